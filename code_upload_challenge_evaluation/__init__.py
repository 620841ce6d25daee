"""Code upload: what runs in the host's and in the participants' containers."""
