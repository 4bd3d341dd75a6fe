package page

import (
	"bytes"
	"flag"
	"image"
	"image/png"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
)

var update = flag.Bool("update", false, "write the pictures of docs/pictures again")

// mostOther is the part of a picture that may differ: letters, where a browser has other fonts.
const mostOther = 0.04

// TestDocsPictures holds the pictures of the page in docs to what it looks like now.
func TestDocsPictures(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     *Input
		clicks []string
		path   [2]string
	}{
		{"report-path", compiled(t, fabrictest.FatTree(t, 8, 3), "updn", compile.Options{}), nil, [2]string{"host 0 leaf 1 pod 1", "host 2 leaf 3 pod 6"}},
		{"report-credit-loop", compiled(t, fabrictest.Grid(t, 1, true, 6, 6), "minhop", compile.Options{}), []string{"#tab-loops", "[data-loop='0']"}, [2]string{}},
		{"report-multicast", compiled(t, fabrictest.Grid(t, 1, false, 8, 6), "xy", compile.Options{Groups: withGroups}), []string{"#tab-groups", "[data-group='1']"}, [2]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Title = "fabric"
			p := open(t, c.in)
			if c.path[0] != "" {
				p.clickNode(p.node(c.path[0]))
				p.clickNode(p.node(c.path[1]), chromedp.ButtonModifiers(chromedp.ModifierShift))
			}
			for _, selector := range c.clicks {
				p.click(selector)
			}
			eval[bool](p, "(document.activeElement.blur(), new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))")
			got, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			p.must(err)
			name := "../../docs/pictures/" + c.name + ".png"
			if *update {
				p.must(os.WriteFile(name, got, 0o644))
			}
			want, err := os.ReadFile(name)
			p.must(err)
			if part := differing(t, got, want); part > mostOther {
				t.Errorf("%s: %.1f %% of it differs from the page; go test ./report/page -run DocsPictures -update writes it again", name, 100*part)
			}
		})
	}
}

// differing is the part of the pixels of two pictures that are clearly others.
func differing(t *testing.T, a, b []byte) float64 {
	t.Helper()
	var pictures [2]image.Image
	for i, data := range [][]byte{a, b} {
		var err error
		if pictures[i], err = png.Decode(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	x, y := pictures[0], pictures[1]
	if x.Bounds() != y.Bounds() {
		return 1
	}
	other, box := 0, x.Bounds()
	for v := box.Min.Y; v < box.Max.Y; v++ {
		for u := box.Min.X; u < box.Max.X; u++ {
			r, g, b, _ := x.At(u, v).RGBA()
			r2, g2, b2, _ := y.At(u, v).RGBA()
			const clear = 0x2000
			if max(r, r2)-min(r, r2) > clear || max(g, g2)-min(g, g2) > clear || max(b, b2)-min(b, b2) > clear {
				other++
			}
		}
	}
	return float64(other) / float64(box.Dx()*box.Dy())
}
