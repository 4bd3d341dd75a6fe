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
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
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
		if strings.Count(got, want) != n {
			t.Errorf("%q is there %d times, want %d:\n%s", want, strings.Count(got, want), n, got)
		}
	}
	if again, err := draw(square()); err != nil || !bytes.Equal(again, svg) {
		t.Errorf("other bytes the second time, %v", err)
	}
}
