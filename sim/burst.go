package sim

import (
	"cmp"
	"context"
	"fmt"
)

// Burst is closed loop: every host sends the same number of messages at once, at time 0, and
// the measurement ends when all have arrived. What a host sends is as in open loop,
// but that it takes the groups that it may send to in turn. Hosts begin in the order
// of Traffic.Hosts. With Traffic.Multicast 1, Sources 1 and one message it is one
// multicast, and Measured.Time how long the last receiver waits for it.
//
// Latencies are from time 0 on, and Offered and Accepted the bytes that were sent
// and have arrived as a share of what the hosts' links carry in the whole time.
// maxTime, if not 0, ends what does not end by itself: forwarding loops. It is
// TimeUp then. Errors are those of Measure.
func Burst(ctx context.Context, net Network, cfg Config, traffic Traffic, messages int, maxTime Time) (*Measured, error) {
	if messages < 1 {
		return nil, fmt.Errorf("a burst of %d messages: want 1 or more of each host", messages)
	}
	traffic.Load = 1
	b := &burst{open{Traffic: traffic, inTurn: true, out: &Measured{}}, messages}
	s, err := New(net, cfg, b)
	if err != nil {
		return nil, err
	}
	if err := b.check(s); err != nil {
		return nil, err
	}
	s.Wake(0, 0)
	b.limits = newLimits(s, b.Hosts, firstStep)
	if err := b.limits.runAll(ctx, s, maxTime, &b.err); err != nil {
		return nil, err
	}
	b.out.closed(s, b.limits)
	b.out.Incomplete = int64(b.flights.live())
	b.shares(0)
	return b.out, nil
}

// firstStep is the time between the first samples of limits in closed loop.
const firstStep = 100 * Nanosecond

// burst drives closed loop.
type burst struct {
	open
	messages int
}

// Wake sends everything.
func (b *burst) Wake(s *Sim, _ int64) {
	for range b.messages {
		for i := range b.Hosts {
			b.draw(s, i)
		}
	}
}

// runAll runs until nothing is left to do, or until maxTime where that is not 0. The error may be
// failed, of a message that could not be sent, or a deadlock.
func (l *limits) runAll(ctx context.Context, s *Sim, maxTime Time, failed *error) error {
	if err := l.run(ctx, s, cmp.Or(maxTime, Forever)); err != nil {
		return err
	}
	if *failed != nil {
		return *failed
	}
	return s.Deadlock()
}

// closed fills in how a closed loop ended.
func (m *Measured) closed(s *Sim, l *limits) {
	m.Counts, m.Reordering = s.Counts(), s.Reordering()
	m.Time = m.Counts.LastAt
	m.TimeUp = s.events.len() > 0
	m.Limits = l.result(m.Time, true)
}
