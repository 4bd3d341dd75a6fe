// Package mesh knows n-dimensional meshes, tori and hypercubes. It makes no
// promise to other modules.
package mesh

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
)

// maxDims keeps the coordinates of a switch within a node description, 64
// bytes (IBA 14.2.5.2). Each dimension longer than 1 at least doubles the
// switches, so a mesh with enough LIDs has at most 15 of these.
const maxDims = 16

// Spec describes a mesh or torus.
type Spec struct {
	Dims  []int  // switches along each dimension, 1 or more; x first, then y
	Wrap  []bool // which dimensions are rings; nil for none
	Hosts int    // on each switch, 0 or more
}

// ParseDims reads sizes such as 16x16x4.
func ParseDims(text string) ([]int, error) {
	var dims []int
	for _, d := range strings.Split(text, "x") {
		n, err := strconv.Atoi(d)
		if err != nil {
			return nil, errors.New("want numbers with x between them, like 16x16")
		}
		dims = append(dims, n)
	}
	return dims, nil
}

// ParseWrap reads which of n dimensions are rings: "all", or a list of x, y,
// z and numbers from 1.
func ParseWrap(text string, n int) (wrap []bool, ok bool) {
	if text == "all" {
		return slices.Repeat([]bool{true}, n), true
	}
	wrap = make([]bool, n)
	for _, name := range strings.Split(text, ",") {
		d := slices.Index([]string{"x", "y", "z"}, name)
		if i, err := strconv.Atoi(name); err == nil {
			d = i - 1
		}
		if d < 0 || d >= n {
			return nil, false
		}
		wrap[d] = true
	}
	return wrap, true
}

// Generate makes a mesh, with spec.Hosts hosts on every switch.
//
// Ports, from 1: 1 leads east (x+1), 2 north (y+1), 3 west (x-1), 4 south
// (y-1); further dimensions have 5 and 6, 7 and 8, ... for +1 and -1. Then
// come the hosts, on a mesh of one dimension from port 5 on as on one of two.
//
// A cable from the last switch of a ring to the first leads from the port for
// +1 to the port for -1. So a ring of two switches has two cables between
// them, and a ring of one has none.
//
// Switches are numbered row by row, the first dimension slowest. They are
// described by their coordinates: "switch 2,3", "host 2,3", and "host 2,3/1"
// if a switch has several hosts.
func Generate(spec Spec) (*fabric.Fabric, error) {
	dims := spec.Dims
	if len(dims) < 1 || len(dims) > maxDims {
		return nil, fmt.Errorf("mesh of %d dimensions: want 1 to %d", len(dims), maxDims)
	}
	if spec.Wrap != nil && len(spec.Wrap) != len(dims) {
		return nil, fmt.Errorf("mesh of %d dimensions with %d that wrap or not: want as many", len(dims), len(spec.Wrap))
	}
	switches := 1
	for _, size := range dims {
		if size < 1 {
			return nil, fmt.Errorf("mesh of %s: want 1 or more switches in each dimension", times(dims))
		}
		if most := int(fabric.MaxUnicastLID); size > most/switches {
			return nil, fmt.Errorf("mesh of %s: want at most %d switches: %w", times(dims), most, fabric.ErrTooLarge)
		}
		switches *= size
	}
	wrap := spec.Wrap
	if wrap == nil {
		wrap = make([]bool, len(dims))
	}
	f, err := generate(newShape(dims, wrap), spec.Hosts, 2*max(len(dims), 2)+1, directions)
	if err != nil {
		return nil, fmt.Errorf("mesh of %s: %w", times(dims), err)
	}
	return f, nil
}

// directions returns the ports of a mesh switch for +1 and -1 in dimension d.
func directions(d int) (plus, minus int) {
	if d < 2 {
		return d + 1, d + 3
	}
	return 2*d + 1, 2*d + 2
}

// Hypercube makes a hypercube: 1<<dim switches whose coordinates are all 0 or
// 1. Port d+1 leads along dimension d, to the switch that differs only in
// that coordinate; hosts follow from port dim+1. Numbers and descriptions are
// those of a mesh of 2x2x...
func Hypercube(dim, hosts int) (*fabric.Fabric, error) {
	if most := bits.Len16(uint16(fabric.MaxUnicastLID)) - 1; dim < 1 || dim > most {
		return nil, fmt.Errorf("hypercube of %d dimensions: want 1 to %d", dim, most)
	}
	shape := newShape(slices.Repeat([]int{2}, dim), make([]bool, dim))
	f, err := generate(shape, hosts, dim+1, func(d int) (plus, minus int) { return d + 1, d + 1 })
	if err != nil {
		return nil, fmt.Errorf("hypercube of %d dimensions: %w", dim, err)
	}
	return f, nil
}

// generate makes a grid with hosts on all switches, from port firstHost on.
// ports returns the ports for +1 and -1 in a dimension.
func generate(shape Shape, hosts, firstHost int, ports func(d int) (plus, minus int)) (*fabric.Fabric, error) {
	if most := int(fabric.MaxPortNum) - (firstHost - 1); hosts < 0 || hosts > most {
		return nil, fmt.Errorf("%d hosts on each switch: want 0 to %d, since a switch has at most %d ports", hosts, most, fabric.MaxPortNum)
	}
	switches := shape.Positions()
	p, err := gen.NewPlan(switches, switches*hosts)
	if err != nil {
		return nil, err
	}
	for s := range switches {
		p.Switch(firstHost-1+hosts, "switch "+shape.Coordinates(s))
	}
	for d := range shape.Dims {
		plus, minus := ports(d)
		for s := range switches {
			if t := shape.Next(s, Plus(d)); t >= 0 && t != s {
				p.Cable(s, plus, t, minus)
			}
		}
	}
	for s := range switches {
		for h := range hosts {
			description := "host " + shape.Coordinates(s)
			if hosts > 1 {
				description += "/" + strconv.Itoa(h)
			}
			p.Cable(p.CA(1, description), 1, s, firstHost+h)
		}
	}
	return p.Fabric()
}

// coordinates returns text like "2,3".
func coordinates(at []int) string { return join(at, ',') }

// times returns text like "16x16".
func times(dims []int) string { return join(dims, 'x') }

func join(numbers []int, separator byte) string {
	b := make([]byte, 0, 64)
	for i, n := range numbers {
		if i > 0 {
			b = append(b, separator)
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}
