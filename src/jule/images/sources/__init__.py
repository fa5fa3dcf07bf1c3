"""Where pictures come from: folders, archives, lists, arrays and data sets."""
