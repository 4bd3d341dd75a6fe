package bound

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Times has the seconds that the busiest channel between switches, and the busiest cable of a host,
// take for their traffic of a demand. Unknown rates count as the commonest.
type Times struct{ Switches, Hosts float64 }

// TimesUnder follows a demand through tables, in O(switches x LIDs). What the tables do not deliver
// puts no load on switches. Its only error is ctx's.
func TimesUnder(ctx context.Context, f *fabric.Fabric, t *lft.Tables, d *lft.Demand) (x Times, err error) {
	type worker struct {
		tree    *lft.Forest
		sources []int64
		load    []int64 // by PortID
	}
	start := func() *worker {
		return &worker{lft.NewForest(f), make([]int64, f.NumSwitches()), make([]int64, f.NumPorts())}
	}
	workers, err := par.ForEachWith(ctx, 0, int(f.MaxLID())+1, start, func(w *worker, lid int) error {
		p := f.LIDPort(fabric.LID(lid))
		if p == fabric.NoPort || !f.PortCounts(p, fabric.ForLoad) {
			return nil
		}
		for s := range w.sources {
			w.sources[s] = d.Background * int64(len(f.HostsOn(fabric.NodeID(s))))
		}
		if lid < len(d.To) {
			for _, x := range d.To[lid] {
				w.sources[x.From] += x.Amount
			}
		}
		w.tree.FindTree(t, fabric.LID(lid))
		w.tree.Flow(w.sources, func(out fabric.PortID, amount int64) { w.load[out] += amount })
		return nil
	})
	if err != nil {
		return x, err
	}
	sum := make([]int64, f.NumPorts())
	for _, w := range workers {
		for p, n := range w.load {
			sum[p] += n
		}
	}
	x.Switches, x.Hosts = busiest(f, f.Channels(), sum, d), hostTime(f, d)
	return x, nil
}

// hostTime returns the seconds of the busiest cable of a host.
func hostTime(f *fabric.Fabric, d *lft.Demand) float64 {
	ports := text.Indices[fabric.PortID](d.Host, func(amount int64) bool { return amount > 0 })
	return busiest(f, ports, d.Host, d)
}

// busiest returns the longest time of ports under load, in seconds.
func busiest(f *fabric.Fabric, ports []fabric.PortID, load []int64, d *lft.Demand) (most float64) {
	for i, rate := range Rates(f, ports) {
		most = max(most, float64(float64(load[ports[i]])*d.Bytes)*8/float64(float64(rate)*1e6))
	}
	return most
}

// switchFlows returns, by switch, the traffic of jobs to the LIDs of its hosts, in the order of
// sending switches.
func switchFlows(f *fabric.Fabric, d *lft.Demand) [][]lft.Flow {
	to := make([][]lft.Flow, f.NumSwitches())
	for lid, flows := range d.To {
		p := f.LIDPort(fabric.LID(lid))
		if len(flows) == 0 || p == fabric.NoPort || !f.PortCounts(p, fabric.ForLoad) || f.PeerSwitch(p) == fabric.NoNode {
			continue
		}
		t := f.PeerSwitch(p)
		to[t] = append(to[t], flows...)
	}
	for t, flows := range to {
		slices.SortStableFunc(flows, func(a, b lft.Flow) int { return cmp.Compare(a.From, b.From) })
		to[t] = flows[:0]
		for _, x := range flows {
			if n := len(to[t]); n > 0 && to[t][n-1].From == x.From {
				to[t][n-1].Amount += x.Amount
			} else {
				to[t] = append(to[t], x)
			}
		}
	}
	return to
}

// DemandDigest identifies a demand. It is the SHA-256 of the background and, for each receiving and
// each sending switch in this order, of their GUIDs and the amount, all in 8 bytes, big-endian.
func DemandDigest(f *fabric.Fabric, d *lft.Demand) [sha256.Size]byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(d.Background))
	for t, flows := range switchFlows(f, d) {
		for _, x := range flows {
			b = binary.BigEndian.AppendUint64(b, uint64(f.Node(fabric.NodeID(t)).GUID))
			b = binary.BigEndian.AppendUint64(b, uint64(f.Node(x.From).GUID))
			b = binary.BigEndian.AppendUint64(b, uint64(x.Amount))
		}
	}
	return sha256.Sum256(b)
}

// FindUnder returns the greatest bound under a demand from the cuts of classes that Find tries; nil
// if no traffic crosses any. Amounts may be divided, so Unit is 0. Load is an amount on the fastest
// cable.
func FindUnder(f *fabric.Fabric, d *lft.Demand) *Bound {
	w := newNetwork(f)
	flows := switchFlows(f, d)
	var best candidate
	most := 0.0
	for _, p := range w.partitions() {
		need := make([][2]int64, p.n) // by class: what jobs send from it, and to it
		for t, from := range flows {
			for _, x := range from {
				if a, b := p.of[x.From], p.of[t]; a != b && w.part[x.From] == w.part[t] {
					need[a][0] += x.Amount
					need[b][1] += x.Amount
				}
			}
		}
		for class := range need {
			edges := w.edges(p, class)
			for i, x := range edges[:2] {
				need := need[class][i] + d.Background*sumHosts(x.hosts)*x.lids
				rate := int64(0)
				for i, n := range x.rates {
					rate += n * w.rates[i]
				}
				if rate == 0 || float64(need)/float64(rate) <= most {
					continue
				}
				most = float64(need) / float64(rate)
				best = (&greatest{network: w, cut: x, value: w.least(big.NewInt(need), x.rates, 0)}).candidate()
				best.words = fmt.Sprintf("%s: all that it %s over %s", w.className(p, int32(class)), [...]string{"sends", "gets"}[i], w.cables(x.rates))
			}
		}
	}
	if best.value == nil {
		return nil
	}
	b := w.bound(&best)
	b.Certificate.Demand = DemandDigest(f, d)
	return b
}

// Seconds returns how long amount takes on the fastest cable between switches.
func Seconds(f *fabric.Fabric, d *lft.Demand, amount float64) float64 {
	w := newNetwork(f)
	if w.fastest == 0 {
		return 0
	}
	return amount * d.Bytes * 8 / (float64(w.fastest) * 1e6)
}
