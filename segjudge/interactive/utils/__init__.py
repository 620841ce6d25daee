"""Small tools of interactive methods: masks, scribbles, drawing."""
