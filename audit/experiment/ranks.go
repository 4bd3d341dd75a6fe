package experiment

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
)

// Ranks are the ports that take part, each once. They have a LID and a cable.
type Ranks struct {
	Ports  []fabric.PortID
	f      *fabric.Fabric
	finder *names.Finder
	known  map[fabric.PortID]bool // of Ports: added by name
}

// NewRanks returns ranks without a port.
func NewRanks(f *fabric.Fabric) *Ranks {
	return &Ranks{f: f, finder: names.NewFinder(f), known: map[fabric.PortID]bool{}}
}

// AddAll adds all ports that count for load.
func (r *Ranks) AddAll() {
	r.Ports = append(r.Ports, text.Where(r.f.CAPorts(), func(p fabric.PortID) bool { return r.f.LID(p) != 0 && r.f.PortCounts(p, fabric.ForLoad) })...)
}

// Add adds the ports of the hosts in a list of names, which may have brackets;
// a host's adapters are in natural order. The error is a host that is unknown,
// has no such port, or was added before.
func (r *Ranks) Add(hosts string) error {
	found, err := r.finder.Hosts(hosts)
	if err != nil {
		return err
	}
	for _, h := range found {
		before := len(r.Ports)
		for _, n := range h.Nodes {
			for p := range r.f.Cabled(n) {
				if r.known[p] {
					return fmt.Errorf("%q is named twice", h.Name)
				}
				if r.f.LID(p) != 0 {
					r.known[p] = true
					r.Ports = append(r.Ports, p)
				}
			}
		}
		if len(r.Ports) == before {
			return fmt.Errorf("%q has no port with a LID and a cable", h.Name)
		}
	}
	return nil
}
