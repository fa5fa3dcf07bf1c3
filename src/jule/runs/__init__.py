"""Run folders: executed, resumed, read back, edited, and used for new images."""
