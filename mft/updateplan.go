package mft

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// updatePlanner plans one MLID at a time.
type updatePlanner struct {
	*Update
	f      *fabric.Fabric
	mlid   fabric.LID
	stages int // of the MLID
	// The old and the new masks, what is in both of them, and what is in either.
	old, new, both, either maskGraph
}

func newUpdatePlanner(f *fabric.Fabric) *updatePlanner {
	return &updatePlanner{Update: &Update{}, f: f, old: newMaskGraph(f), new: newMaskGraph(f), both: newMaskGraph(f), either: newMaskGraph(f)}
}

// plan orders the writes that take the masks of an MLID from old to new tables. trees are those of
// the MLID before and after.
func (w *updatePlanner) plan(m fabric.LID, tables [2]*Tables, trees [2][]*Tree) error {
	w.mlid, w.stages = m, 0
	old, new := tables[0].Ports(m), tables[1].Ports(m)
	w.either.load(union(w.either.ports[:0], old, new))
	if w.either.isForest() {
		w.write(old, new)
		return nil
	}
	stay := intersect(old, new)
	w.old.load(old)
	w.new.load(new)
	w.both.load(stay)
	for k, t := range tables {
		if len(trees[k]) == 0 {
			all := t.EndPorts(m)
			trees[k] = []*Tree{{Senders: all, Receivers: all}}
		}
	}
	lost := Interruption{MLID: m, From: 1}
	for _, s := range w.listSenders(trees) {
		if err := w.checkSender(s, &lost); err != nil {
			return err
		}
		w.findLost(s, &lost)
	}
	w.write(old, stay)
	w.write(stay, new)
	lost.To = w.stages
	switch {
	case lost.Faulty:
		lost.Receivers, lost.Pairs = nil, 0
	case lost.Pairs > 0:
		slices.Sort(lost.Receivers)
		lost.Receivers = slices.Compact(lost.Receivers)
	default:
		return nil
	}
	w.Interrupted = append(w.Interrupted, lost)
	return nil
}

// checkSender sends packets of s through the old and the new masks, and notes whom these do not suit:
// in x that the old ones are faulty. It returns an error if the new masks do not suit a sender of theirs.
func (w *updatePlanner) checkSender(s *mlidSender, x *Interruption) error {
	was, harm := w.old.findFault(s.port), w.new.findFault(s.port)
	switch {
	case harm != "" && s.in[1]:
		return fmt.Errorf("MLID %#04x: the new masks: %s", uint16(w.mlid), harm)
	case harm != "":
		w.Stop = append(w.Stop, MLIDSender{w.mlid, s.port})
	case was != "" && !s.in[0]:
		w.Start = append(w.Start, MLIDSender{w.mlid, s.port})
	case was != "" && !x.Faulty:
		x.Faulty, x.Reason = true, was
	}
	return nil
}

// findLost adds to x the receivers of s that old and new masks supply, and those ports that are in both
// do not. The packet that checkSender sent has to be the last one in the old and the new masks.
func (w *updatePlanner) findLost(s *mlidSender, x *Interruption) {
	w.both.sendPacket(w.f.Attachment(s.port))
	var lost []fabric.PortID
	for _, r := range slices.Concat(s.keeps...) {
		if at := w.f.Attachment(r); w.old.wasLeftBy(at) && w.new.wasLeftBy(at) && !w.both.wasLeftBy(at) {
			lost = append(lost, r)
		}
	}
	slices.Sort(lost)
	lost = slices.Compact(lost) // once, though it be a member of several groups
	if x.Reason == "" && lost != nil {
		x.Reason = w.either.findFault(s.port)
	}
	x.Receivers = append(x.Receivers, lost...)
	x.Pairs += len(lost)
}

// write adds a stage that takes the masks from some ports to others, both ascending.
func (w *updatePlanner) write(from, to []fabric.PortID) {
	var stage []Write
	for ports := w.either.ports; len(ports) > 0; {
		s, position := w.f.Owner(ports[0]), w.f.Num(ports[0])/PositionPorts
		end := min(w.f.Port(s, position*PositionPorts)+PositionPorts, w.f.PortBase(s)+fabric.PortID(w.f.Node(s).NumPorts)+1)
		cut := func(list *[]fabric.PortID) []fabric.PortID {
			i, _ := slices.BinarySearch(*list, end)
			head := (*list)[:i:i]
			*list = (*list)[i:]
			return head
		}
		was, is := cut(&from), cut(&to)
		cut(&ports)
		if !slices.Equal(was, is) {
			stage = append(stage, Write{Switch: s, MLID: w.mlid, Position: uint8(position), Ports: is})
		}
	}
	if stage == nil {
		return
	}
	if w.stages == len(w.Stages) {
		w.Stages = append(w.Stages, nil)
	}
	w.Stages[w.stages] = append(w.Stages[w.stages], stage...)
	w.stages++
}

// mlidSender is a sender of the MLID at hand.
type mlidSender struct {
	port  fabric.PortID
	in    [2]bool           // it sends before the change, after it
	keeps [][]fabric.PortID // old receivers that stay, by group
}

// listSenders lists who sends to the MLID before and after, by port.
func (w *updatePlanner) listSenders(trees [2][]*Tree) []*mlidSender {
	senders := map[fabric.PortID]*mlidSender{}
	for k, list := range trees {
		for _, t := range list {
			for _, p := range t.Senders {
				if w.f.Attachment(p) == fabric.NoPort {
					continue
				}
				if senders[p] == nil {
					senders[p] = &mlidSender{port: p}
				}
				senders[p].in[k] = true
			}
		}
	}
	for _, x := range trees[0] {
		for _, y := range trees[1] {
			if x.MGID != y.MGID && x.MGID.IsValid() && y.MGID.IsValid() {
				continue
			}
			stay := intersect(x.Receivers, y.Receivers)
			for _, p := range intersect(x.Senders, y.Senders) {
				if s := senders[p]; s != nil {
					s.keeps = append(s.keeps, stay)
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(senders), func(x, y *mlidSender) int { return cmp.Compare(x.port, y.port) })
}

// intersect is what two ascending lists share.
func intersect(a, b []fabric.PortID) (both []fabric.PortID) {
	for _, p := range a {
		for len(b) > 0 && b[0] < p {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == p {
			both = append(both, p)
		}
	}
	return both
}
