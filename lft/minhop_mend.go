package lft

import "github.com/ibweave/ibweave/fabric"

var _ Rerouter = Minhop{}

// Mender takes shortest paths in f. It is never nil.
func (Minhop) Mender(f *fabric.Fabric, r *Routing) Mender {
	return &minhopMender{f: f, hops: make([]uint8, f.NumSwitches())}
}

var _ Keeper = Minhop{}

// Keep is nil: any shortest path will do.
func (Minhop) Keep(*fabric.Fabric, []int32) []int32 { return nil }

type minhopMender struct {
	f     *fabric.Fabric
	hops  []uint8
	queue []fabric.NodeID
	ports []fabric.PortID
}

func (m *minhopMender) To(t fabric.NodeID) (hops []uint8, ok bool) {
	for i := range m.hops {
		m.hops[i] = fabric.Unreachable
	}
	m.hops[t] = 0
	m.queue = append(m.queue[:0], t)
	for i := 0; i < len(m.queue); i++ {
		u := m.queue[i]
		_, to := m.f.SwitchLinks(u)
		for _, v := range to {
			if m.hops[v] != fabric.Unreachable {
				continue
			}
			if m.hops[v] = m.hops[u] + 1; m.hops[v] >= fabric.MaxHops {
				return nil, false
			}
			m.queue = append(m.queue, v)
		}
	}
	return m.hops, true
}

func (m *minhopMender) Ports(u fabric.NodeID) []fabric.PortID {
	ports, to := m.f.SwitchLinks(u)
	m.ports = m.ports[:0]
	for i, p := range ports {
		if m.hops[to[i]]+1 == m.hops[u] {
			m.ports = append(m.ports, p)
		}
	}
	return m.ports
}
