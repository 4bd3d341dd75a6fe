package sim

import "fmt"

// ConservationError says that flits or credits were lost or made: the simulator
// is wrong.
type ConservationError struct {
	At  Time
	Msg string
}

func (e *ConservationError) Error() string {
	return fmt.Sprintf("the simulator is wrong: at %s %s", e.At, e.Msg)
}

func (s *Sim) conservation(format string, args ...any) error {
	return &ConservationError{s.events.now, fmt.Sprintf(format, args...)}
}

// verify counts all flits, credits and copies from scratch. It takes time for all channels
// and copies.
func (s *Sim) verify() error {
	size := int32(s.cfg.BufferFlits)
	var missing, refs, cells int64
	for i := range s.channels {
		in := &s.channels[i]
		var used, count int32
		for c := in.head; c != none; c = s.cells.items[c].next {
			ce := &s.cells.items[c]
			if ce.in != int32(i) {
				return s.conservation("a packet is in the buffers %d and %d", ce.in, i)
			}
			flits := ce.flits
			if s.worms {
				sent := flits
				if ce.parent != none {
					parent := &s.branches.items[ce.parent]
					sent = parent.sent
					if s.ports[parent.port].taken == ce.parent {
						sent++
					}
				}
				if ce.gone > ce.arrived || ce.arrived > sent || sent > flits {
					return s.conservation("of %d flits %d were sent, %d have come and %d are gone", flits, sent, ce.arrived, ce.gone)
				}
				flits = sent - ce.gone
			}
			used += flits
			count++
		}
		if used != in.used {
			return s.conservation("%d flits are in a buffer that counts %d", used, in.used)
		}
		cells += int64(count)
		if in.credits >= unlimited { // to a host, or of no cable
			continue
		}
		if in.credits < 0 || in.credits+used > size {
			return s.conservation("%d credits for a buffer of %d flits that has %d", in.credits, size, used)
		}
		missing += int64(size - in.credits - used)
	}
	if missing != s.returning {
		return s.conservation("%d flits of credit are missing and %d on their way", missing, s.returning)
	}
	if buffered := int64(s.cells.live()); cells > buffered || buffered > s.counts.Copies {
		return s.conservation("%d packets in buffers, %d cells, %d copies", cells, buffered, s.counts.Copies)
	}
	for _, p := range s.packets.items {
		refs += int64(p.refs)
	}
	waiting := int64(0) // for the start of their message
	if s.cfg.Startup > 0 {
		waiting = refs - s.counts.Copies
		if waiting > s.counts.Queued {
			return s.conservation("%d packets are at their hosts, of %d", waiting, s.counts.Queued)
		}
	}
	if refs-waiting != s.counts.Copies || waiting < 0 {
		return s.conservation("%d references to packets for %d copies", refs, s.counts.Copies)
	}
	return nil
}
