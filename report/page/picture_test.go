package page_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"image/png"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/report/page"
)

// TestSameBytes: on one CPU and on all, twice.
func TestSameBytes(t *testing.T) {
	fabricView := short.Must(page.ParseView("fabric"))(t)
	for name, in := range page.Inputs(t) {
		t.Run(name, func(t *testing.T) {
			all := func() []byte {
				var b bytes.Buffer
				short.Check(t, page.Write(context.Background(), &b, in))
				p := short.Must(page.Draw(context.Background(), in, fabricView))(t)
				short.Check(t, p.SVG(&b))
				return b.Bytes()
			}
			first := all()
			before := runtime.GOMAXPROCS(1)
			second := all()
			runtime.GOMAXPROCS(before)
			short.EqualList(t, first, second, "other bytes on one CPU")
		})
	}
}

// TestPictures: each view is well-formed SVG with its words in it, and a PNG with its
// colour.
func TestPictures(t *testing.T) {
	all := page.Inputs(t)
	for _, c := range short.Part(1, []struct {
		input, view string
		words       []string
	}{
		{"mesh with groups", "path:host 0,0,host 4,3", []string{"path from host 0,0 to host 4,3", "switch 4,0"}},
		{"mesh with groups", "fabric", []string{"5x4 mesh", "routes on a link"}},
		{"mesh with groups", "group:one sender", []string{"multicast group one sender", "senders: 1, receivers: 3"}},
		{"mesh with groups", "group:0xc001", []string{"multicast group everybody"}},
		{"torus with a loop", "credit-loop", []string{"credit loop of 4 channels", "waits for"}},
		{"fat tree", "path:host 0 leaf 0 pod 0,host 3 leaf 3 pod 7", []string{"core"}},
		{"mesh with groups", "fan:host 4,3", []string{"all ways to host 4,3", "0 of 20 switches have a choice of ports"}},
	}) {
		t.Run(c.view, func(t *testing.T) {
			view := short.Must(page.ParseView(c.view))(t)
			p := short.Must(page.Draw(context.Background(), all[c.input], view))(t)
			var b bytes.Buffer
			short.Check(t, p.SVG(&b))
			text := textOf(t, b.Bytes())
			for _, w := range c.words {
				short.Contains(t, text, w, "no", "in the SVG")
			}
			b.Reset()
			short.Check(t, p.PNG(&b))
			img := short.Must(png.Decode(&b))(t)
			if p.Tone() == nil {
				return
			}
			r, g, bl, _ := p.Tone().RGBA()
			found := false
			for y := range img.Bounds().Dy() {
				for x := range img.Bounds().Dx() {
					a, b, c, _ := img.At(x, y).RGBA()
					found = found || a == r && b == g && c == bl
				}
			}
			if !found {
				t.Error("nothing in the colour of the view")
			}
		})
	}
}

// textOf is the text of an SVG.
func textOf(t *testing.T, data []byte) string {
	var b strings.Builder
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return b.String()
		}
		short.Check(t, err)
		if c, ok := token.(xml.CharData); ok {
			b.Write(c)
			b.WriteByte(' ')
		}
	}
}
