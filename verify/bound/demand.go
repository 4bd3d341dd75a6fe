package bound

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// Times is how long the busiest channel between switches, and the busiest cable of a host, take for what a
// demand puts on them, in seconds: unknown rates count as the commonest.
type Times struct{ Switches, Hosts float64 }

// TimesUnder follows a demand through tables: O(switches x LIDs). What the tables do not deliver is no load
// between switches. Its only error is that of ctx.
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
	var ports []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		channels, _ := f.SwitchLinks(s)
		ports = append(ports, channels...)
	}
	sum := make([]int64, f.NumPorts())
	for _, w := range workers {
		for p, n := range w.load {
			sum[p] += n
		}
	}
	x.Switches, x.Hosts = busiest(f, ports, sum, d), hostTime(f, d)
	return x, nil
}

// hostTime is that of the busiest cable of a host.
func hostTime(f *fabric.Fabric, d *lft.Demand) float64 {
	var ports []fabric.PortID
	for p, amount := range d.Host {
		if amount > 0 {
			ports = append(ports, fabric.PortID(p))
		}
	}
	return busiest(f, ports, d.Host, d)
}

// busiest is the longest time of some ports, in seconds.
func busiest(f *fabric.Fabric, ports []fabric.PortID, load []int64, d *lft.Demand) (most float64) {
	for i, rate := range Rates(f, ports) {
		most = max(most, float64(float64(load[ports[i]])*d.Bytes)*8/float64(float64(rate)*1e6))
	}
	return most
}
