// Package multistage has the networks of the paper on recursive
// multicast in wrap-around multistage interconnection networks, with
// the hardware of the paper: headers that elements route by (Region,
// Cube), the algorithm (TwoPhase), blocking (FirstConflict), the
// model of an unbuffered network (CopyRates, Predict), and
// simulations of unbuffered networks by time slots (SimulateSlots)
// and of worms by flits (RunWorms). Their fabrics and tables are
// those of package banyan. It makes no promise to other modules.
//
// Networks have n stages, numbered from n-1, the first, down to 0, and N = 1<<n processors
// or nodes. These are numbered from 0 at the top, like the links of each stage.
package multistage

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/routing/banyan"
)

// Outputs is a set of output ports of a switching element: bit b is port b.
type Outputs uint8

// Has returns true if port b, 0 or 1, is in the set.
func (o Outputs) Has(b int) bool { return o>>b&1 != 0 }

// Header is a multicast header of fixed size, by which elements route:
// one of the restricted address encodings Region and Cube of section 2.2.
type Header[H any] interface {
	// Split returns the ports by which an element of a stage sends
	// a packet on, and by port the header that it has there.
	Split(stage int) (out [2]H, ports Outputs)
}

// Region is the region encoding: all addresses from Min to Max. It does
// not wrap around from the last address to 0 (E-N3). NEC's Cenju-3 has it.
type Region struct{ Min, Max int }

// Check returns an error if elements of a network of n stages cannot route by r.
func (r Region) Check(n int) error {
	top := 1 << n
	if r.Min < 0 || r.Max < r.Min || r.Max >= top {
		return fmt.Errorf("region %v: want addresses from 0 to %d, the lower one first", r, top-1)
	}
	return nil
}

// Size returns how many addresses are in r.
func (r Region) Size() int { return r.Max - r.Min + 1 }

func (r Region) String() string { return fmt.Sprintf("%d-%d", r.Min, r.Max) }

// Split is the decision and the recursion of section 2.2: a packet
// goes to the port that bit stage of both addresses names, or to
// both ports if Min has a 0 there and Max a 1. Higher bits of Min
// and Max are equal whenever a packet comes to a stage (E-N2).
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

// RegionOf returns the region of addresses, which are ascending
// and distinct, and true; false if the addresses have gaps.
func RegionOf(addresses []int) (Region, bool) {
	if len(addresses) == 0 {
		return Region{}, false
	}
	r := Region{addresses[0], addresses[len(addresses)-1]}
	return r, r.Max-r.Min == len(addresses)-1
}

// Cube is the cube encoding: all addresses that equal Fixed outside
// the bits of Free; Fixed and Free share no bit. nCUBE-2 has it.
// The paper only names it: 2, 4, 8... addresses that differ in the
// bits of Free fit a header of twice n bits, like a region.
type Cube struct{ Fixed, Free int }

// Check returns an error if elements of a network of n stages cannot route by c.
func (c Cube) Check(n int) error {
	top := 1 << n
	if c.Fixed < 0 || c.Free < 0 || c.Fixed >= top || c.Free >= top || c.Fixed&c.Free != 0 {
		return fmt.Errorf("cube with fixed bits %#b, free bits %#b: want different ones of %d bits", c.Fixed, c.Free, n)
	}
	return nil
}

// Split sends a packet to both ports if bit stage is free, else to the port that it names.
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

// CubeOf returns the smallest cube that has all addresses, one or
// more and no two alike. exact is true if the cube has no others.
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

// Hop is a copy's way through an element.
type Hop[H any] struct {
	Stage  int
	In     int // input link
	Out    int // output link, of the same element
	Header H   // on the output link
}

// Hops follows a packet and its copies from a processor through a network of n stages.
// Hops are in the order of stages from n-1 to 0, then of input and output links.
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
