package adaptive

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// Stats measures how much choice the tables leave.
type Stats struct {
	Entries   int64   `json:"entries"`               // of PLFT 0 that lead to another switch
	Adaptive  int64   `json:"adaptive"`              // how many of them have a choice of ports
	Ports     float64 `json:"mean_ports"`            // ports of such an entry on average, the static one included
	Widest    int     `json:"max_ports"`             // greatest number of ports of an entry
	MaxGroups int     `json:"max_groups_per_switch"` // groups that entries use
}

// Measure measures the first PLFT.
func Measure(f *fabric.Fabric, t *Tables) Stats {
	type counts struct {
		Stats
		ports int64
	}
	plft := t.PLFTs[0]
	list := par.EachWith(f.NumSwitches(), func() *counts { return new(counts) }, func(c *counts, i int) {
		s := fabric.NodeID(i)
		sets, used, groups := make([]PortSet, len(t.Groups[s])), make([]bool, len(t.Groups[s])), 0
		for g := range sets {
			sets[g] = t.Groups[s][g].Ports()
		}
		far := make([]bool, 256) // by port: it leads to another switch
		links, _ := f.SwitchLinks(s)
		for _, p := range links {
			far[f.Num(p)] = true
		}
		for lid, port := range plft.Ports.Row(s) {
			if !far[port] {
				continue
			}
			c.Entries++
			state, g := plft.At(s, fabric.LID(lid))
			if state == Static || g < 0 {
				continue
			}
			if !used[g] {
				used[g] = true
				groups++
			}
			n := sets[g].Len()
			if !sets[g].Has(port) {
				n++
			}
			if n > 1 {
				c.Adaptive++
				c.ports += int64(n)
				c.Widest = max(c.Widest, n)
			}
		}
		c.MaxGroups = max(c.MaxGroups, groups)
	})
	var all counts
	for _, c := range list {
		all.Entries, all.Adaptive, all.ports = all.Entries+c.Entries, all.Adaptive+c.Adaptive, all.ports+c.ports
		all.Widest, all.MaxGroups = max(all.Widest, c.Widest), max(all.MaxGroups, c.MaxGroups)
	}
	if all.Adaptive > 0 {
		all.Ports = float64(all.ports) / float64(all.Adaptive)
	}
	return all.Stats
}
