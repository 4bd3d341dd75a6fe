package multistage

import (
	"cmp"
	"fmt"
	"slices"
)

// CopyCounts counts, over all places that there are for f copies, the copies of
// a packet that come to each stage: index i is stage i-1, index 0 the nodes, and
// index n the places. Copies split at stage i at the rate
// CopyCounts[i]/CopyCounts[i+1] - 1. It follows the headers through all splits.
// p is not EarlyCopies.
func CopyCounts(n, f int, p Placement) ([]int64, error) {
	if err := p.Check(n, f); err != nil {
		return nil, err
	}
	if p == EarlyCopies {
		return nil, fmt.Errorf("%s placement has no regions", p)
	}
	k := make([]int64, n+1)
	count, step := p.Places(n, f)
	now, next := make([]Region, 0, f), make([]Region, 0, f)
	for i := range count {
		now = append(now[:0], regionFrom(i*step, f))
		k[n]++
		for stage := n - 1; stage >= 0; stage-- {
			next = next[:0]
			for _, r := range now {
				out, ports := r.Split(stage)
				for b := range 2 {
					if ports.Has(b) {
						next = append(next, out[b])
					}
				}
			}
			now, next = next, now
			k[stage] += int64(len(now))
		}
	}
	return k, nil
}

// part is a header as far as a stage has yet to look at it, and the probability
// that a link has it.
type part struct {
	region Region
	p      float64
}

// Exact is the expected performance of the network itself in the drop model,
// without the assumptions of Predict. Into has means over the links of a stage.
//
// The two inputs of an element are reached from different nodes, so that what is
// on one has no effect about the other, and by the symmetry of sources both have
// the same distribution of headers, which depends on the address bits above the
// stage only. Whatever input wins a conflict, an output for which an input asks with
// probability r has each header 2-r times as often as one input has it. It takes
// O(n x nodes x log nodes).
func Exact(n int, t Traffic, p Placement) (*Prediction, error) {
	if err := t.Check(n); err != nil {
		return nil, err
	}
	if err := p.Check(n, t.Fanout); err != nil {
		return nil, err
	}
	if p == EarlyCopies {
		c, err := CopyRates(n, t.Fanout, p)
		if err != nil {
			return nil, err
		}
		return Predict(c, t)
	}
	type link struct {
		unicast float64
		parts   []part
	}
	rate := t.Rate()
	links := []link{{unicast: rate * (1 - t.Multicast)}} // by address bits above the stage
	count, step := p.Places(n, t.Fanout)
	for k := range count {
		links[0].parts = append(links[0].parts, part{regionFrom(k*step, t.Fanout), rate * t.Multicast / float64(count)})
	}
	mean := func() (all, unicast float64) {
		for _, l := range links {
			unicast += l.unicast
			for _, x := range l.parts {
				all += x.p
			}
		}
		return (all + unicast) / float64(len(links)), unicast / float64(len(links))
	}
	r := &Prediction{Into: make([]StageRates, n)}
	for stage := n - 1; stage >= 0; stage-- {
		all, unicast := mean()
		r.Into[stage].Packets = all
		if all > 0 {
			r.Into[stage].Multicast = 1 - unicast/all
		}
		next := make([]link, 2*len(links))
		for i, l := range links {
			out := next[2*i : 2*i+2]
			asked := [2]float64{l.unicast / 2, l.unicast / 2}
			for _, x := range l.parts {
				to, ports := x.region.Split(stage)
				for b := range 2 {
					if ports.Has(b) {
						asked[b] += x.p
						out[b].parts = append(out[b].parts, part{to[b], x.p})
					}
				}
			}
			for b := range 2 {
				out[b].unicast = l.unicast / 2 * (2 - asked[b])
				for k := range out[b].parts {
					out[b].parts[k].p *= 2 - asked[b]
				}
				out[b].parts = merged(out[b].parts)
			}
		}
		links = next
	}
	r.Packets, r.Unicast = mean()
	r.setThroughput(t)
	return r, nil
}

// merged adds up the probabilities of equal regions.
func merged(list []part) []part {
	slices.SortFunc(list, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.region.Min, b.region.Min), cmp.Compare(a.region.Max, b.region.Max))
	})
	n := 0
	for _, x := range list {
		if n > 0 && list[n-1].region == x.region {
			list[n-1].p += x.p
			continue
		}
		list[n] = x
		n++
	}
	return list[:n]
}
