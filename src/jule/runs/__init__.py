"""Run folders: create, execute, resume, read and edit them, and use them for new images."""
