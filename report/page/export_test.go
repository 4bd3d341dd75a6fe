package page

import "image/color"

// Inputs are what the tests draw.
var Inputs = inputs

// Tone is the colour of what a picture shows.
func (p *Picture) Tone() color.Color { return p.tone }
