// Package picture writes the pictures of package page as SVG and PNG. It makes no
// promise to other modules.
package picture

import (
	"bytes"
	"image"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/report/page"
)

// WriteSVG writes a picture as SVG. Errors are those of w.
func WriteSVG(w io.Writer, p *page.Picture) error {
	width, height := p.Size()
	paper := vgsvg.NewWith(vgsvg.UseWH(vg.Length(width), vg.Length(height)))
	p.DrawOn(canvas{draw.New(paper)})
	var b bytes.Buffer
	if _, err := paper.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WritePNG writes a picture as PNG of 120 dots an inch. Errors are those of w.
func WritePNG(w io.Writer, p *page.Picture) error {
	width, height := p.Size()
	return chart.WritePNG(w, vg.Length(width), vg.Length(height), func(to draw.Canvas) error {
		p.DrawOn(canvas{to})
		return nil
	})
}

// canvas draws with the plotting library.
type canvas struct{ to draw.Canvas }

func at(p page.Point) vg.Point { return vg.Point{X: vg.Length(p.X), Y: vg.Length(p.Y)} }

func outline(polygon []page.Point) (v vg.Path) {
	v.Move(at(polygon[0]))
	for _, p := range polygon[1:] {
		v.Line(at(p))
	}
	v.Close()
	return v
}

func (c canvas) stroke(v vg.Path, pen page.Pen) {
	var dashes []vg.Length
	for _, d := range pen.Dashes {
		dashes = append(dashes, vg.Length(d))
	}
	c.to.SetColor(pen.Color)
	c.to.SetLineWidth(vg.Length(pen.Width))
	c.to.SetLineDash(dashes, 0)
	c.to.Stroke(v)
}

func (c canvas) fill(v vg.Path, with color.Color) {
	c.to.SetColor(with)
	c.to.Fill(v)
}

func (c canvas) Curve(p [4]page.Point, pen page.Pen) {
	var v vg.Path
	v.Move(at(p[0]))
	if p[0] == p[1] {
		v.Line(at(p[3]))
	} else {
		v.CubeTo(at(p[1]), at(p[2]), at(p[3]))
	}
	c.stroke(v, pen)
}

func (c canvas) Outline(polygon []page.Point, pen page.Pen) { c.stroke(outline(polygon), pen) }

func (c canvas) Fill(polygon []page.Point, with color.Color) { c.fill(outline(polygon), with) }

func (c canvas) Disc(middle page.Point, radius float64, with color.Color) {
	m, r := at(middle), vg.Length(radius)
	var v vg.Path
	v.Move(vg.Point{X: m.X + r, Y: m.Y})
	v.Arc(m, r, 0, 2*math.Pi)
	v.Close()
	c.fill(v, with)
}

func (c canvas) Image(m image.Image, low, high page.Point) {
	c.to.DrawImage(vg.Rectangle{Min: at(low), Max: at(high)}, m)
}

func styleOf(t page.Text) draw.TextStyle {
	style := draw.TextStyle{
		Color: t.Color, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(t.Size)},
		XAlign: draw.XLeft, Handler: plot.DefaultTextHandler,
		YAlign: map[page.Edge]draw.YAlignment{page.Top: draw.YTop, page.Middle: draw.YCenter, page.Bottom: draw.YBottom}[t.Edge],
	}
	if t.Centered {
		style.XAlign = draw.XCenter
	}
	return style
}

func (c canvas) Text(t page.Text) {
	c.to.FillText(styleOf(t), at(t.At), fabric.Printable(t.Words))
}

func (c canvas) TextWidth(t page.Text) float64 {
	return float64(styleOf(t).Width(fabric.Printable(t.Words)))
}
