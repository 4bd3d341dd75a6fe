package mft

import "github.com/ibweave/ibweave/fabric"

// Verdict is what PlanUpdate's flooder says of masks that nobody is writing:
// loop, lose, duplicate or ok, the first of them that happens to a packet from
// sender.
func Verdict(f *fabric.Fabric, ports []fabric.PortID, sender fabric.PortID, receivers []fabric.PortID) string {
	w := newUpdater(f)
	g := []Tree{{MLID: MinMLID, Senders: []fabric.PortID{sender}, Receivers: receivers}}
	w.load(MinMLID, ports, ports, nil, g, g)
	w.fly(nil)
	w.follow = true
	what, _ := w.flood(w.senders[0].entry)
	lost := 0
	for _, p := range receivers {
		if i := w.find(terminal(f, p)); p != sender && (i < 0 || w.cover[i] == 0) {
			lost++
		}
	}
	switch {
	case what == loop:
		return "loop"
	case lost > 0:
		return "lose"
	case what == duplicate:
		return "duplicate"
	}
	return "ok"
}
