// Package multistage has the networks of the paper on recursive multicast in wrap-around
// multistage interconnection networks as its own hardware works: the headers that elements
// route by (Region, Cube), the algorithm (TwoPhase), what blocks what (FirstConflict), the
// model of an unbuffered network (CopyRates, Predict), and simulations of unbuffered networks
// by time slots (SimulateSlots) and of worms by flits (RunWorms). Their fabrics and tables
// are those of package banyan. It makes no promise to other modules.
//
// Networks have n stages, numbered n-1, the first, to 0, and N = 1<<n processors or nodes,
// numbered from 0 like the links of each stage from the top.
package multistage

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/routing/banyan"
)

// Outputs is a set of output ports of a switching element: bit b stands for
// port b.
type Outputs uint8

// Has returns true if port b, 0 or 1, is among them.
func (o Outputs) Has(b int) bool { return o>>b&1 != 0 }

// Header is a multicast header of fixed size that elements route by: the
// restricted address encodings Region and Cube of section 2.2.
type Header[H any] interface {
	// Split is what an element of a stage does with a packet: the ports that it
	// goes out on, and the header that it has there.
	Split(stage int) (out [2]H, ports Outputs)
}

// Region is the region encoding: all addresses from Min to Max, which do not go on at 0
// behind the last one (E-N3). NEC's Cenju-3 has it.
type Region struct{ Min, Max int }

// Check says whether elements of a network of n stages can route by r.
func (r Region) Check(n int) error {
	top := 1 << n
	if r.Min < 0 || r.Max < r.Min || r.Max >= top {
		return fmt.Errorf("region %v: want addresses from 0 to %d, the lower one first", r, top-1)
	}
	return nil
}

// Size is how many addresses are in r.
func (r Region) Size() int { return r.Max - r.Min + 1 }

func (r Region) String() string { return fmt.Sprintf("%d-%d", r.Min, r.Max) }

// Split is the decision and the recursion of section 2.2: a packet goes to the
// port that bit stage of both addresses says, and to both ports where Min has a
// 0 and Max a 1. The bits above are the same in Min and Max whenever a packet comes
// to a stage (E-N2).
func (r Region) Split(stage int) (out [2]Region, ports Outputs) {
	bit := 1 << stage
	low := bit - 1
	if first := r.Min >> stage & 1; first == r.Max>>stage&1 {
		out[first] = r
		return out, 1 << first
	}
	out[0] = Region{r.Min, r.Max&^bit | low}
	out[1] = Region{(r.Min | bit) &^ low, r.Max}
	return out, 3
}

// RegionOf returns the region that consists of the addresses, which are ascending and
// without repetition, and whether there is one.
func RegionOf(addresses []int) (Region, bool) {
	if len(addresses) == 0 {
		return Region{}, false
	}
	r := Region{addresses[0], addresses[len(addresses)-1]}
	return r, r.Max-r.Min == len(addresses)-1
}

// Cube is the cube encoding: all addresses that have the bits of Fixed where
// Free has none; Fixed has no bit that Free has. nCUBE-2 has it. The paper names
// it only: a set of 2, 4, 8... addresses that differ in the bits of Free fits a
// header of twice n bits, like a region.
type Cube struct{ Fixed, Free int }

// Check says whether elements of a network of n stages can route by c.
func (c Cube) Check(n int) error {
	top := 1 << n
	if c.Fixed < 0 || c.Free < 0 || c.Fixed >= top || c.Free >= top || c.Fixed&c.Free != 0 {
		return fmt.Errorf("cube with fixed bits %#b, free bits %#b: want different ones of %d bits", c.Fixed, c.Free, n)
	}
	return nil
}

// Split sends a packet to both ports where bit stage is free.
func (c Cube) Split(stage int) (out [2]Cube, ports Outputs) {
	bit := 1 << stage
	if c.Free&bit == 0 {
		b := c.Fixed >> stage & 1
		out[b] = c
		return out, 1 << b
	}
	c.Free &^= bit
	out[0], out[1] = c, c
	out[1].Fixed |= bit
	return out, 3
}

// CubeOf is the smallest cube that has all the addresses, at least one, and says
// whether it has no others. The addresses are without repetition.
func CubeOf(addresses []int) (c Cube, exact bool) {
	if len(addresses) == 0 {
		return Cube{}, false
	}
	for _, a := range addresses {
		c.Free |= a ^ addresses[0]
	}
	c.Fixed = addresses[0] &^ c.Free
	return c, 1<<bits.OnesCount(uint(c.Free)) == len(addresses)
}

// Hop is a copy of a packet that passes an element.
type Hop[H any] struct {
	Stage  int
	In     int // input link
	Out    int // output link, of the same element
	Header H   // on the output link
}

// Hops follows a packet from a processor through a network of n stages: its
// copies by stage from n-1 to 0, then by input link and output link.
func Hops[H Header[H]](n, source int, h H) []Hop[H] {
	type arrival struct {
		link   int
		header H
	}
	var hops []Hop[H]
	now := []arrival{{banyan.Shuffle(n, source), h}}
	for stage := n - 1; stage >= 0; stage-- {
		var next []arrival
		for _, a := range now {
			out, ports := a.header.Split(stage)
			for b := range 2 {
				if ports.Has(b) {
					link := a.link&^1 | b
					hops = append(hops, Hop[H]{Stage: stage, In: a.link, Out: link, Header: out[b]})
					next = append(next, arrival{banyan.Butterfly(stage, link), out[b]})
				}
			}
		}
		slices.SortFunc(next, func(a, b arrival) int { return cmp.Compare(a.link, b.link) })
		now = next
	}
	return hops
}
