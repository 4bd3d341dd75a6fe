package drawing

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// square is a packet that holds a cable and waits for another one, and a path.
func square() *Network {
	return &Network{
		Title: "Fig. 1", Spots: []Spot{{Name: "a", X: 1, Y: 1}, {Name: "b", X: 2, Y: 1}, {Name: "c", X: 2, Y: 2}, {Name: "host", X: 1, Y: 2, End: true}},
		Cables: [][2]int{{0, 1}, {1, 2}, {0, 3}, {0, 2}},
		Arrows: []Arrow{{From: 0, To: 1, Who: "Y"}, {From: 1, To: 2, Who: "Y", Waits: true}, {From: 2, To: 1, Who: "X"}, {From: 1, To: 0, Who: "X"}},
		Notes:  []string{"A note."},
	}
}

// TestDrawingText has a drawing in words.
func TestDrawingText(t *testing.T) {
	var b bytes.Buffer
	short.Check(t, square().Text(&b))
	want := `Fig. 1

  X: c -> b, b -> a
  Y holds a -> b and waits for b -> c
  A note.
`
	short.Equal(t, b.String(), want)
}

// tags are elements of SVG, between which its words are.
var tags = regexp.MustCompile(`<[^>]*>`)

// TestDrawingPicture has all words in an SVG, once each, and the same bytes twice.
func TestDrawingPicture(t *testing.T) {
	draw := func(d *Network) (svg []byte, err error) {
		var b, png bytes.Buffer
		c := &Sheet{Title: "Two drawings", Drawings: []Network{*d, *d}, Caption: "buffers: 1 flit."}
		if err := c.SVG(&b); err != nil {
			return nil, err
		}
		return b.Bytes(), c.PNG(&png)
	}
	svg := short.Must(draw(square()))(t)
	got := html.UnescapeString(tags.ReplaceAllString(string(svg), "\n"))
	for want, n := range map[string]int{"Two drawings": 1, "Fig. 1": 2, "host": 2, "buffers: 1 flit.": 1, "Y holds a -> b and waits for b -> c": 2} {
		short.Equal(t, strings.Count(got, want), n, want, "is there", "times", got)
	}
	short.EqualList(t, short.Must(draw(square()))(t), svg, "other bytes the second time")
}
