"""What each family shows and offers outside the upload: the mirror of `evaluation_script/families`."""
