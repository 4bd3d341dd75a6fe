package sim

// Events is the queue of this package's events for simulators of other models: by
// time, and events of one time in the order in which they were pushed. The unit of
// Time is the caller's.
type Events[E any] struct{ q *queue[E] }

// NewEvents makes an empty queue at time 0.
func NewEvents[E any]() *Events[E] {
	e := &Events[E]{&queue[E]{}}
	e.q.init(0)
	return e
}

// Push adds an event at a time that is not before Now.
func (e *Events[E]) Push(at Time, event E) { e.q.push(max(at, e.q.now), event) }

// Pop takes the first event, which is not later than until, and moves Now to it.
func (e *Events[E]) Pop(until Time) (event E, ok bool) { return e.q.pop(until) }

// Now is the time of the event popped last.
func (e *Events[E]) Now() Time { return e.q.now }

// Len is how many events there are.
func (e *Events[E]) Len() int { return e.q.len() }
