// Package picture writes the pictures of package page as SVG and PNG. It makes no
// promise to other modules.
package picture

import (
	"image"
	"image/color"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/report/chart"
	"github.com/ibweave/ibweave/report/page"
)

// WriteSVG writes a picture as SVG. Errors are those of w.
func WriteSVG(w io.Writer, p *page.Picture) error { return write(w, p, chart.WriteSVG) }

// WritePNG writes a picture as PNG of 120 dots an inch. Errors are those of w.
func WritePNG(w io.Writer, p *page.Picture) error { return write(w, p, chart.WritePNG) }

func write(w io.Writer, p *page.Picture, to chart.Writer) error {
	width, height := p.Size()
	return to(w, vg.Length(width), vg.Length(height), func(paper draw.Canvas) error {
		p.DrawOn(canvas{paper})
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
	c.to.SetLineStyle(draw.LineStyle{Color: pen.Color, Width: vg.Length(pen.Width), Dashes: dashes})
	c.to.Stroke(v)
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

func (c canvas) Outline(polygon []page.Point, pen page.Pen) {
	c.stroke(outline(polygon), pen)
}

func (c canvas) Fill(polygon []page.Point, with color.Color) {
	c.to.SetColor(with)
	c.to.Fill(outline(polygon))
}

func (c canvas) Disc(middle page.Point, radius float64, with color.Color) {
	c.to.DrawGlyph(draw.GlyphStyle{Color: with, Radius: vg.Length(radius), Shape: draw.CircleGlyph{}}, at(middle))
}

func (c canvas) Image(m image.Image, low, high page.Point) {
	c.to.DrawImage(vg.Rectangle{Min: at(low), Max: at(high)}, m)
}

func styleOf(t page.Text) draw.TextStyle {
	style := chart.TextStyle(vg.Length(t.Size))
	style.Color, style.YAlign = t.Color, [...]draw.YAlignment{page.Top: draw.YTop, page.Middle: draw.YCenter, page.Bottom: draw.YBottom}[t.Edge]
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
