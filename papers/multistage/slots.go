package multistage

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/ibweave/ibweave/routing/banyan"
)

// SlotBlock is how many slots are simulated with one stream of random
// numbers. Their mean is one sample for the confidence intervals.
const SlotBlock = 128

// warmUp is how many slots before a block are not counted, if
// nodes send received packets on in the next slot.
const warmUp = 16

// SlotOptions are the choices of SimulateSlots.
type SlotOptions struct {
	Stages    int
	Traffic   Traffic
	Placement Placement
	// Recycle adds Phase 2: multicast packets get random
	// destinations, and a node that receives a copy in one slot
	// sends it to its destination in the next, instead of a packet
	// of its own. If the destinations are a region, Phase 1 goes
	// there. A node that is the destination of its copy keeps it.
	Recycle bool
	// Slots is the least number to simulate; it is rounded up to whole SlotBlocks, two or more.
	Slots int
	Seed  uint64
}

func (o *SlotOptions) check() error {
	if err := o.Traffic.Check(o.Stages); err != nil {
		return err
	}
	if err := o.Placement.Check(o.Stages, o.Traffic.Fanout); err != nil {
		return err
	}
	if o.Slots < 1 {
		return fmt.Errorf("%d slots: want at least 1", o.Slots)
	}
	return nil
}

// Estimate is a mean with its confidence.
type Estimate struct {
	Mean float64
	// Half is half the width of the 95 % confidence interval: 1.96 standard
	// errors of the means of SlotBlocks.
	Half float64
}

// SlotResult has the results of a simulation. Rates are for each node and slot.
type SlotResult struct {
	Slots int
	// Throughput is as in Predict: unicast packets, and copies of Phase 1, each as 1/f.
	Throughput Estimate
	// Whole counts a multicast packet only when all f copies were delivered, as
	// the text of section 4.1 has it (E-N5).
	Whole Estimate
	// Final counts copies that came to the destinations of their
	// packet, each as 1/f. Without Recycle it is Throughput.
	Final Estimate
}

// SimulateSlots simulates an unbuffered network. If two packets ask for one
// output, a coin decides, and the loser is dropped, or the part of its copies
// behind that output. All packets of a slot pass the whole network in it.
//
// The result depends on the options alone. A slot takes
// O(Stages x nodes) and allocates nothing. If ctx ends first,
// its error is returned.
func SimulateSlots(ctx context.Context, o SlotOptions) (*SlotResult, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	blocks := make([]slotCounts, max(2, (o.Slots+SlotBlock-1)/SlotBlock))
	s := newSimulator(&o)
	for b := range blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		blocks[b] = s.runBlock(uint64(b))
	}
	return summarize(&o, blocks), nil
}

// slotCounts has the counts of one block.
type slotCounts struct {
	unicast int64 // delivered
	copies  int64 // of Phase 1, delivered
	whole   int64 // multicast packets with all copies delivered
	final   int64 // copies that came to a destination of their packet
}

func summarize(o *SlotOptions, blocks []slotCounts) *SlotResult {
	f, chances := float64(o.Traffic.Fanout), float64(SlotBlock)*float64(int(1)<<o.Stages)
	estimate := func(of func(*slotCounts) float64) (e Estimate) {
		var squares float64
		for b := range blocks {
			e.Mean += of(&blocks[b]) / chances
		}
		e.Mean /= float64(len(blocks))
		for b := range blocks {
			d := of(&blocks[b])/chances - e.Mean
			squares += d * d
		}
		k := float64(len(blocks))
		e.Half = 1.96 * math.Sqrt(squares/(k-1)/k)
		return e
	}
	return &SlotResult{
		Slots:      len(blocks) * SlotBlock,
		Throughput: estimate(func(c *slotCounts) float64 { return float64(c.unicast) + float64(c.copies)/f }),
		Whole:      estimate(func(c *slotCounts) float64 { return float64(c.unicast + c.whole) }),
		Final:      estimate(func(c *slotCounts) float64 { return float64(c.unicast) + float64(c.final)/f }),
	}
}

// A packet on a link is one word, 0 for none: the lowest and the
// highest address of its header and its source, 16 bits each,
// and flags. The addresses of a cube are its fixed bits, and the
// fixed and free bits together: at a free bit they differ, as
// those of a region do, and an element leaves them as they are.
const (
	highShift   = 16
	sourceShift = 32
	address     = 1<<16 - 1

	present   = 1 << 63
	multicast = 1 << 62
	recycled  = 1 << 61 // in Phase 2
	direct    = 1 << 60 // Phase 1 goes to the destinations
)

type simulator struct {
	o    *SlotOptions
	n    int
	size int // nodes
	f    int
	pcg  rand.PCG
	coin func() uint64 // 64 random bits; tests replace it

	rate, multicastRate uint64 // probabilities as thresholds
	places, step        int
	cube                bool

	links, after []uint64 // by link: packets into and out of a stage
	inject       []uint64 // by node: what it sends, before Shuffle
	returned     []uint64 // by node: what it has to send in Phase 2
	delivered    []uint16 // by source: copies delivered in the slot
	drawn        []uint64 // destinations being drawn, a bit each
	destinations []uint16 // by source and index of the copy: destination

	counts slotCounts
}

// threshold returns the number that 64 random bits are below with probability p.
func threshold(p float64) uint64 {
	if p >= 1 {
		return math.MaxUint64
	}
	return uint64(p * (1 << 63) * 2)
}

func newSimulator(o *SlotOptions) *simulator {
	n, f := o.Stages, o.Traffic.Fanout
	size := 1 << n
	s := &simulator{
		o: o, n: n, size: size, f: f,
		rate:          threshold(o.Traffic.Rate()),
		multicastRate: threshold(o.Traffic.Multicast),
		cube:          o.Placement == EarlyCopies,
		links:         make([]uint64, size),
		after:         make([]uint64, size),
		inject:        make([]uint64, size),
		returned:      make([]uint64, size),
		delivered:     make([]uint16, size),
		drawn:         make([]uint64, (size+63)/64),
	}
	s.coin = s.pcg.Uint64
	s.places, s.step = o.Placement.Places(n, f)
	if o.Recycle {
		s.destinations = make([]uint16, size*f)
	}
	return s
}

func (s *simulator) runBlock(b uint64) slotCounts {
	s.pcg.Seed(s.o.Seed, b)
	clear(s.returned)
	if s.o.Recycle {
		for range warmUp {
			s.runSlot()
		}
	}
	s.counts = slotCounts{}
	for range SlotBlock {
		s.runSlot()
	}
	return s.counts
}

func (s *simulator) runSlot() {
	s.generatePackets()
	s.passStages()
	s.deliverPackets()
}

// drawBelow draws a random number from 0 to n-1. Some have a probability greater by
// 2^-52 or less, which does not matter here.
func (s *simulator) drawBelow(n int) int {
	hi, _ := bits.Mul64(s.pcg.Uint64(), uint64(n))
	return int(hi)
}

// generatePackets fills inject with the packets of a slot.
func (s *simulator) generatePackets() {
	for a := range s.inject {
		s.delivered[a] = 0
		if s.returned[a] != 0 {
			s.inject[a] = s.returned[a]
			s.returned[a] = 0
			continue
		}
		if s.pcg.Uint64() >= s.rate {
			s.inject[a] = 0
			continue
		}
		x := present | uint64(a)<<sourceShift
		if s.multicastRate == 0 || s.multicastRate != math.MaxUint64 && s.pcg.Uint64() >= s.multicastRate {
			d := uint64(s.drawBelow(s.size))
			s.inject[a] = x | d | d<<highShift
			continue
		}
		s.inject[a] = x | multicast | s.makeHeader(a)
	}
}

// makeHeader draws the destinations of a multicast packet from node a and makes its flags
// and addresses.
func (s *simulator) makeHeader(a int) uint64 {
	if s.o.Recycle {
		if lo, ok := s.drawDestinations(a); ok {
			return direct | uint64(lo) | uint64(lo+s.f-1)<<highShift
		}
	}
	return s.placeHeader(s.drawBelow(s.places))
}

// placeHeader returns the addresses in the header to the k-th place for copies.
func (s *simulator) placeHeader(k int) uint64 {
	if s.cube {
		c := cubeFrom(s.n, k, s.f)
		return uint64(c.Fixed) | uint64(c.Fixed|c.Free)<<highShift
	}
	r := regionFrom(k*s.step, s.f)
	return uint64(r.Min) | uint64(r.Max)<<highShift
}

// drawDestinations draws destinations for a packet of node a. If they are a region, it
// returns the first of them and true.
func (s *simulator) drawDestinations(a int) (lo int, ok bool) {
	for k := 0; k < s.f; {
		d := s.drawBelow(s.size)
		if bit := uint64(1) << (d % 64); s.drawn[d/64]&bit == 0 {
			s.drawn[d/64] |= bit
			k++
		}
	}
	to := s.destinations[a*s.f : (a+1)*s.f]
	k := 0
	for w, set := range s.drawn {
		for ; set != 0; set &= set - 1 {
			to[k] = uint16(w*64 + bits.TrailingZeros64(set))
			k++
		}
		s.drawn[w] = 0
	}
	return int(to[0]), !s.cube && int(to[s.f-1]-to[0]) == s.f-1
}

// passStages passes the packets through all stages, and leaves them in links by node.
func (s *simulator) passStages() {
	for a, x := range s.inject {
		s.links[banyan.Shuffle(s.n, a)] = x
	}
	for i := s.n - 1; i >= 0; i-- {
		s.routeStage(i)
		s.links, s.after = s.after, s.links
	}
}

// routeStage routes all packets of stage i by their headers,
// without branches that depend on packets.
func (s *simulator) routeStage(i int) {
	in, out := s.links, s.after[:len(s.links)]
	bit := uint64(1) << i
	low := bit - 1
	// What Region.Split clears and sets in the header on port 0 and 1.
	clear0, set0, clear1, set1 := bit<<highShift, low<<highShift, low, bit
	// The butterfly swaps bits 0 and i of the index of an output: it moves
	// outputs for which these bits differ.
	move := 1<<i | 1
	if i == 0 {
		move = 0
	}
	lo, hi := uint(i)&63, uint(i+highShift)&63
	if s.cube {
		clear0, set0, clear1, set1 = 0, 0, 0, 0
	}
	coins := uint64(0) // for each output: 1 gives it to input 1
	for e := 0; e+1 < len(in); e += 2 {
		if coins >>= 2; e%64 == 0 {
			coins = s.coin()
		}
		a, b := in[e], in[e+1]
		// 1 for port 0, 2 for port 1, 3 for both: a bit that is 1 asks for port 1.
		wantA := ((1 + a>>lo&1) | (1 + a>>hi&1)) & -(a >> 63)
		wantB := ((1 + b>>lo&1) | (1 + b>>hi&1)) & -(b >> 63)
		// All bits if an input asks for both ports, else none.
		bothA, bothB := -(wantA & (wantA >> 1)), -(wantB & (wantB >> 1))
		a0, a1 := a&^(bothA&clear0)|bothA&set0, a&^(bothA&clear1)|bothA&set1
		b0, b1 := b&^(bothB&clear0)|bothB&set0, b&^(bothB&clear1)|bothB&set1
		from0 := -(wantB & (^wantA | coins) & 1)      // all ones: port 0 has what input 1 sends
		from1 := -(wantB & (^wantA | coins) >> 1 & 1) // port 1
		out0 := b0&from0 | a0&^from0&-(wantA&1)
		out1 := b1&from1 | a1&^from1&-(wantA>>1)
		high := e >> lo & 1
		out[e^move&-high] = out0
		out[(e+1)^move&(high-1)] = out1
	}
}

// deliverPackets counts the packets that came to the nodes, and keeps those that they send on.
func (s *simulator) deliverPackets() {
	c := &s.counts
	for a, x := range s.links {
		switch {
		case x == 0:
		case x&recycled != 0:
			c.final++
		case x&multicast == 0:
			c.unicast++
		default:
			c.copies++
			source := int(x >> sourceShift & address)
			s.delivered[source]++
			if int(s.delivered[source]) == s.f {
				c.whole++
			}
			if !s.o.Recycle || x&direct != 0 {
				c.final++
				continue
			}
			// Stages have used up bits of the address, so the index of
			// this copy follows from where the packet was sent.
			d := uint64(s.destinations[source*s.f+s.copyIndex(source, a)])
			if int(d) == a {
				c.final++
				continue
			}
			s.returned[a] = present | recycled | d | d<<highShift | uint64(a)<<sourceShift
		}
	}
}

// copyIndex returns which copy of the packet from source comes to node a, from 0.
func (s *simulator) copyIndex(source, a int) int {
	first := int(s.inject[source] & address)
	if s.cube {
		return (a - first) / (s.size / s.f)
	}
	return a - first
}
