"""Export a run: folders of pictures, a network for other programs, a table."""
