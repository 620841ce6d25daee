"""The colours of pictures, as the player has them (`pages/frames_masks.js`): eyes of all kinds tell them apart."""

#: Of the truth alone, of a prediction alone, of what is taken for another object, of what is right.
MISSING, SURPLUS, OTHER, RIGHT = (230, 159, 0), (0, 114, 178), (213, 94, 0), (0, 158, 115)
GREY = (128, 128, 128)
#: Objects in turn; what a mistake has comes last.
OBJECTS = ((86, 180, 233), (204, 121, 167), (240, 228, 66), OTHER, RIGHT, GREY, MISSING, SURPLUS)
#: Where there is no picture.
GROUND = (58, 62, 70)
