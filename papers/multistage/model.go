package multistage

import (
	"fmt"

	"github.com/ibweave/ibweave/routing/banyan"
)

// Traffic is what each node of an unbuffered network sends
// in a time slot (section 4.1): a packet with probability
// Rate, independently of others. The part Multicast of
// packets has Fanout destinations, the others one. Unicast
// destinations are uniform, and blocked packets are lost.
type Traffic struct {
	// Load is the offered load: copies for each node and slot that
	// would be delivered if none were blocked.
	Load      float64
	Multicast float64 // 0 to 1
	Fanout    int     // 1 to the number of nodes
}

// Rate returns the packets that a node sends in a slot, in the mean.
func (t Traffic) Rate() float64 { return t.Load / t.meanCopies() }

func (t Traffic) meanCopies() float64 { return 1 - t.Multicast + t.Multicast*float64(t.Fanout) }

// Check returns an error if there can be no such traffic in a network of n stages.
func (t Traffic) Check(n int) error {
	switch {
	case n < 1 || n > banyan.MaxStages:
		return fmt.Errorf("banyan network of %d stages: want 1 to %d", n, banyan.MaxStages)
	case t.Fanout < 1 || t.Fanout > 1<<n:
		return fmt.Errorf("fanout %d: want 1 to %d", t.Fanout, 1<<n)
	case !(t.Multicast >= 0 && t.Multicast <= 1):
		return fmt.Errorf("a part %g of packets that are multicast: want 0 to 1", t.Multicast)
	case !(t.Load >= 0 && t.Rate() <= 1):
		return fmt.Errorf("offered load %g: want 0 to %g, a packet from each node", t.Load, t.meanCopies())
	}
	return nil
}

// CopyRates returns the probability that a copy is split, by stage, as in
// Figure 5. It has a closed form. For EarlyCopies f may be any number:
// the stage that completes the copies splits only a part of them (E-N9).
func CopyRates(n, f int, p Placement) ([]float64, error) {
	if err := p.Check(n, f); err != nil && p != EarlyCopies {
		return nil, err
	}
	if err := RandomStart.Check(n, f); err != nil {
		return nil, err
	}
	c := make([]float64, n)
	if p == EarlyCopies {
		copies := 1
		for i := n - 1; i >= 0 && copies < f; i-- {
			next := min(2*copies, f)
			c[i] = float64(next)/float64(copies) - 1
			copies = next
		}
		return c, nil
	}
	above := countCopies(n, f, p, n)
	for i := n - 1; i >= 0; i-- {
		k := countCopies(n, f, p, i)
		c[i] = float64(k)/float64(above) - 1
		above = k
	}
	return c, nil
}

// countCopies counts the copies of a packet that come to stage
// i-1, or for i = 0 to the nodes, summed over all places for f
// copies. Copies from start s are the blocks of 1<<i addresses
// that the region from s to s+f-1 touches: (s+f-1)>>i - s>>i + 1.
func countCopies(n, f int, p Placement, i int) int64 {
	count, step := p.Places(n, f)
	switch {
	case i == n:
		return int64(count)
	case p == AlignedStart:
		return int64(count) * int64((f-1)>>i+1)
	}
	return sumQuotients(count+f-1, i) - sumQuotients(f-1, i) - sumQuotients(count, i) + int64(count)*int64(step)
}

func sumQuotients(m, i int) int64 {
	a, r := int64(m>>i), int64(m&(1<<i-1))
	return a*(a-1)/2<<i + a*r
}

// StageRates is the traffic on a link into a stage.
type StageRates struct {
	Packets   float64 // on the link in a slot
	Multicast float64 // the part of packets that are multicast
}

// Prediction is the performance of a network.
type Prediction struct {
	Into []StageRates // by stage
	// Packets and Unicast are received by a node in a slot: the paper's p' and u'.
	Packets, Unicast float64
	// Throughput is the paper's: (Packets-Unicast)/f + Unicast. So
	// f copies of a multicast packet count once, and copies count
	// even if others of their packet were blocked (E-N5).
	Throughput float64
}

func (p *Prediction) setThroughput(t Traffic) {
	p.Throughput = (p.Packets-p.Unicast)/float64(t.Fanout) + p.Unicast
}

// Predict is the analytic model of section 4.1 for a network with
// the copy rates c. An input of an element asks for an output with
// probability q = p(1+mc)/2, since a packet that is copied asks for
// both. An output has a packet unless neither input asks for it:
//
//	p' = 1 - (1-q)^2           = p(1+mc) - p^2 (1+mc)^2 / 4        (1)
//	u' = p(1-m)(1 - q/2)       = p(1-m) - p^2 (1-m)(1+mc) / 4      (2)
//
// Equation (1) is missing in the copies of the paper at hand;
// this form follows from the q in the printed (2) (E-N4).
//
// The model assumes that a stage splits a copy with probability c
// whatever happened to the copy before, and that both ports are
// equally likely. That holds for AlignedStart and EarlyCopies,
// where Predict is exact; otherwise it is near. It covers one pass:
// copies that Phase 2 sends again are not in the load (E-N8).
func Predict(c []float64, t Traffic) (*Prediction, error) {
	n := len(c)
	if err := t.Check(n); err != nil {
		return nil, err
	}
	r := &Prediction{Into: make([]StageRates, n)}
	p, m := t.Rate(), t.Multicast
	u := p * (1 - m)
	for i := n - 1; i >= 0; i-- {
		if !(c[i] >= 0 && c[i] <= 1) {
			return nil, fmt.Errorf("copy rate %g at stage %d: want 0 to 1", c[i], i)
		}
		r.Into[i] = StageRates{p, m}
		asked := p * (1 + m*c[i])
		u = p*(1-m) - p*(1-m)*asked/4
		p = asked - asked*asked/4
		if p > 0 {
			m = 1 - u/p
		}
	}
	r.Packets, r.Unicast = p, u
	r.setThroughput(t)
	return r, nil
}
