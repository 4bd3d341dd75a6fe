package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg/draw"

	"github.com/ibweave/ibweave/internal/short"
)

// example has two panels, intervals, and curves of which one lies on another.
func example() *Chart {
	size := Axis{Label: "data size", Unit: "bytes", Scale: Log2}
	time := Axis{Label: "time", Unit: "µs", Scale: Log10}
	a := []Point{{X: 32, Y: 3.5}, {X: 64, Y: 50, Half: 10}, {X: 512, Y: 900}}
	b := []Point{{X: 32, Y: 3.5}, {X: 64, Y: 5}}
	return &Chart{Title: "Fig. 1", Panels: []Panel{
		{Title: "(a)", X: size, Y: time, Curves: []Curve{{Name: "unicast", Points: a}, {Name: "multicast", Points: b}, {Name: "none"}}},
		{Title: "(b)", X: Axis{Label: "load", Scale: Linear}, Y: Axis{Label: "share", Scale: Linear}, Curves: []Curve{{Name: "multicast", Points: b}}},
	}}
}

// texts are the character data of an SVG, which must be well-formed.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var list []string
	in := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		short.Check(t, err)
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			list = append(list, strings.TrimSpace(string(text)))
		}
	}
}

// TestSVG has titles, axes with units, powers at the ticks and each curve once in
// the legend of its panel.
func TestSVG(t *testing.T) {
	var b bytes.Buffer
	short.Check(t, example().SVG(&b))
	got := texts(t, b.Bytes())
	for want, n := range map[string]int{
		"Fig. 1": 1, "(a)": 1, "(b)": 1, "data size (bytes)": 1, "time (µs)": 1, "load": 1, "share": 1,
		"32": 2, "64": 2, "128": 1, "256": 1, "512": 1, "1000": 1, "100": 1, "10": 1, "unicast": 1, "multicast": 2, "none": 1,
	} {
		count := 0
		for _, text := range got {
			if text == want {
				count++
			}
		}
		short.Equal(t, count, n, want, "is there", "times", got)
	}
}

// TestSameBytes has the same pictures twice.
func TestSameBytes(t *testing.T) {
	for name, draw := range map[string]func(*Chart, io.Writer) error{"SVG": (*Chart).SVG, "PNG": (*Chart).PNG} {
		var one, two bytes.Buffer
		short.Check(t, draw(example(), &one))
		short.Check(t, draw(example(), &two))
		short.EqualList(t, one.Bytes(), two.Bytes(), name, "differs")
	}
}

// TestPNG has a picture in which the colours of all curves in the legend are seen.
func TestPNG(t *testing.T) {
	var b bytes.Buffer
	short.Check(t, example().PNG(&b))
	picture, _ := short.Must2(image.Decode(&b))(t)
	seen := map[color.Color]int{}
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			seen[color.RGBAModel.Convert(picture.At(x, y))]++
		}
	}
	for i, c := range Palette[:3] {
		if n := seen[c]; n < 20 {
			t.Errorf("%d pixels of curve %d", n, i)
		}
	}
	short.Equal(t, seen[Palette[3]], 0, "pixels of a curve that is not there")
	if seen[color.RGBA{0xff, 0xff, 0xff, 0xff}] < bounds.Dx()*bounds.Dy()/2 {
		t.Error("the ground is not white")
	}
}

// TestRefused has charts that cannot be drawn, with what is wrong with them.
func TestRefused(t *testing.T) {
	for want, spoil := range map[string]func(c *Chart){
		`chart "Fig. 1" has no panel`:          func(c *Chart) { c.Panels = nil },
		`curve "unicast": a point at `:         func(c *Chart) { c.Panels[0].Curves[0].Points[1].Half = math.NaN() },
		`curve "multicast": a point at +Inf, `: func(c *Chart) { c.Panels[1].Curves[0].Points[0].X = math.Inf(1) },
		`, 0 on a logarithmic axis`:            func(c *Chart) { c.Panels[0].Curves[0].Points[1].Y = 0 },
	} {
		c := example()
		spoil(c)
		for _, draw := range []func(*Chart, io.Writer) error{(*Chart).SVG, (*Chart).PNG} {
			var b bytes.Buffer
			if err := draw(c, &b); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
				t.Errorf("%v and %d bytes, want %s", err, b.Len(), want)
			}
		}
	}
}

// TestLimits has axes of no point, one point, and intervals beyond a logarithm.
func TestLimits(t *testing.T) {
	inf := math.Inf(1)
	for _, tt := range []struct {
		low, high float64
		scale     Scale
		y         bool
		want      [2]float64
	}{
		{inf, -inf, Linear, true, [2]float64{0, 1.05}},
		{inf, -inf, Log10, true, [2]float64{0.1, 10}},
		{8192, 8192, Log2, false, [2]float64{4096, 16384}},
		{32, 512, Log2, false, [2]float64{32, 512}},
		{3, 512, Log2, true, [2]float64{2, 512}},
		{3, 900, Log10, true, [2]float64{1, 1000}},
		{-5, 900, Log10, true, [2]float64{0.1, 1000}},
		{10, 20, Linear, true, [2]float64{0, 21}},
		{-10, 10, Linear, true, [2]float64{-10, 11}},
		{10, 20, Linear, false, [2]float64{10, 20}},
		{4, 4, Linear, false, [2]float64{3, 5}},
	} {
		low, high := limits(tt.low, tt.high, tt.scale, tt.y)
		if math.Abs(low-tt.want[0]) > 1e-9 || math.Abs(high-tt.want[1]) > 1e-9 {
			t.Errorf("%+v: %v to %v", tt, low, high)
		}
	}
}

// TestStyles has 40 curves that look different even without their dashes.
func TestStyles(t *testing.T) {
	seen := map[draw.GlyphStyle]int{}
	for i := range 40 {
		line, glyph := styleOf(i)
		if other, ok := seen[glyph]; ok || line.Color != glyph.Color {
			t.Errorf("curve %d looks like %d, or its line unlike its marker", i, other)
		}
		seen[glyph] = i
	}
}

// TestIntervalBelowZero has an interval that a logarithmic axis cannot show whole:
// it ends at the axis.
func TestIntervalBelowZero(t *testing.T) {
	c := example()
	c.Panels[0].Curves[0].Points[1].Half = 70
	var svg, png bytes.Buffer
	short.Check(t, c.SVG(&svg))
	short.Check(t, c.PNG(&png))
	texts(t, svg.Bytes())
}

// TestNames has names on the Y axis, and no lines between points.
func TestNames(t *testing.T) {
	y := Axis{Scale: Linear, Names: []string{"first", "second", "third"}}
	a := []Point{{X: 1, Y: 3}, {X: 2, Y: 2}, {X: 1.5, Y: 1}}
	c := &Chart{Panels: []Panel{{X: Axis{Label: "time", Scale: Linear}, Y: y, Curves: []Curve{{Name: "a", Points: a}}}}}
	var named, plain bytes.Buffer
	short.Check(t, c.SVG(&named))
	for _, want := range y.Names {
		if got := texts(t, named.Bytes()); !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	c.Panels[0].Y.Names = nil
	short.Check(t, c.SVG(&plain))
	joins := func(svg []byte) int { return bytes.Count(svg, []byte("stroke:#0072B2")) }
	if joins(named.Bytes()) >= joins(plain.Bytes()) {
		t.Errorf("%d strokes with names, %d without", joins(named.Bytes()), joins(plain.Bytes()))
	}
}

// TestFixedWidths has all text of an SVG take the room that it was laid out for: a long name of
// an axis has two lines, and no line is longer than the picture.
func TestFixedWidths(t *testing.T) {
	c := example()
	c.Panels[1].Y.Label = "a name of an axis that is much longer than the axis, & has to be parted"
	var b bytes.Buffer
	short.Check(t, c.SVG(&b))
	if n, m := bytes.Count(b.Bytes(), []byte("<text ")), bytes.Count(b.Bytes(), []byte("<text textLength=")); n != m || n == 0 {
		t.Errorf("%d of %d texts have a width", m, n)
	}
	got := texts(t, b.Bytes())
	const line = "longer than the axis, & has to be"
	if !slices.Contains(got, line) {
		t.Errorf("the long name is not parted: %q", got)
	}
	width := func(text string) string {
		return fmt.Sprintf("%.4g", TextStyle(9).Width(text).Points())
	}
	for _, text := range []string{"load", line} {
		short.Contains(t, b.String(), `textLength="`+width(text)+`"`, "no text", "the width of", text)
	}
}

// TestIntervalEnds has intervals end at 0 of what cannot be negative, and at the most that can be.
func TestIntervalEnds(t *testing.T) {
	p := &Panel{Y: Axis{Scale: Linear}, Most: 1}
	for _, tt := range []struct{ y, half, low, high float64 }{
		{0.5, 0.2, 0.2, 0.2}, {0.1, 0.2, 0.1, 0.2}, {0.9, 0.2, 0.2, 0.1}, {-0.1, 0.2, 0.2, 0.2},
	} {
		if low, high := p.interval(Point{Y: tt.y, Half: tt.half}); math.Abs(low-tt.low)+math.Abs(high-tt.high) > 1e-12 {
			t.Errorf("%+v: %v down, %v up", tt, low, high)
		}
	}
}

// TestLooks has a scheme look the same in charts that name it first.
func TestLooks(t *testing.T) {
	one, two := example(), example()
	slices.Reverse(two.Panels[0].Curves)
	one.Looks = []string{"multicast", "unicast"}
	two.Looks = one.Looks
	if a, b := one.looks(), two.looks(); a["multicast"] != 0 || a["unicast"] != 1 || b["multicast"] != 0 || b["none"] != a["none"] {
		t.Errorf("%v and %v", a, b)
	}
}
