package plugin

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/verify"
)

// pieces is the parts of a fabric that no cables join. OpenSM has such a subnet
// when it has lost packets, until its next sweep: it knows of a node, and not of
// the cables to it.
type pieces struct {
	of    []int32 // by NodeID of switches
	count []piece
	main  int32 // the piece with most switches, of equal ones the first
}

// piece counts what a piece has.
type piece struct{ switches, switchLIDs, ports, portLIDs int64 }

// findPieces walks the cables between switches: CAs and routers do not forward.
func findPieces(f *fabric.Fabric) *pieces {
	p := &pieces{of: make([]int32, f.NumSwitches())}
	for n := range p.of {
		p.of[n] = -1
	}
	lids := func(at fabric.PortID) int64 {
		if f.LID(at) == 0 {
			return 0
		}
		return 1 << f.LMC(at)
	}
	var queue []fabric.NodeID
	for s := range fabric.NodeID(f.NumSwitches()) {
		if p.of[s] >= 0 {
			continue
		}
		k := int32(len(p.count))
		p.count = append(p.count, piece{})
		p.of[s] = k
		queue = append(queue[:0], s)
		for i := 0; i < len(queue); i++ {
			p.count[k].switches++
			p.count[k].switchLIDs += lids(f.PortBase(queue[i]))
			_, to := f.SwitchLinks(queue[i])
			for _, t := range to {
				if p.of[t] < 0 {
					p.of[t] = k
					queue = append(queue, t)
				}
			}
		}
		if p.count[k].switches > p.count[p.main].switches {
			p.main = k
		}
	}
	for _, port := range f.CAPorts() {
		n := f.Owner(port)
		if to := f.Owner(f.Peer(port)); f.IsSwitch(to) {
			k := p.of[to]
			p.count[k].ports++
			p.count[k].portLIDs += lids(port)
		} else if n < to || n == to && port < f.Peer(port) { // a cable between two CAs
			p.count = append(p.count, piece{ports: 2, portLIDs: lids(port) + lids(f.Peer(port))})
		}
	}
	return p
}

// apart counts the pairs that no cables join, as verify.UnicastCounts and
// verify.ManagementCounts count pairs.
func (p *pieces) apart() (unicast, management int64) {
	var all piece
	for _, c := range p.count {
		all.switchLIDs += c.switchLIDs
		all.portLIDs += c.portLIDs
	}
	for _, c := range p.count {
		unicast += c.ports * (all.portLIDs - c.portLIDs)
		management += c.switches*(all.portLIDs-c.portLIDs) + (c.ports+c.switches)*(all.switchLIDs-c.switchLIDs)
	}
	return unicast, management
}

// excuse makes notes of the findings about pairs that cannot reach each other, if
// these are exactly those that no cables join: no engine does better. It says what
// it has excused, "" for nothing.
func (p *pieces) excuse(v *verify.Result) string {
	unicast, management := p.apart()
	if unicast+management == 0 || v.Unicast.Unreachable != unicast || v.Management.Unreachable != management {
		return ""
	}
	v.Regrade(verify.UnicastUnreachable, verify.Note)
	v.Regrade(verify.ManagementUnreachable, verify.Note)
	return fmt.Sprintf("the subnet is in %d pieces that no cables join, and tables for each", len(p.count))
}
