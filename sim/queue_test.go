package sim

import (
	"testing"

	"pgregory.net/rapid"
)

// pop takes the first event if it is not later than until, and sets now.
func (q *queue) pop(until Time) (e event, ok bool) {
	if q.at == len(q.cur) && !q.turn() {
		return e, false
	}
	t := &q.cur[q.at]
	if t.at > until {
		return e, false
	}
	q.at++
	q.now = t.at
	return t.event, true
}

// TestQueueOrder has ties in the order in which they were pushed, and times near,
// far and beyond the wheel.
func TestQueueOrder(t *testing.T) {
	q := &queue{}
	q.init(bucketBits)
	times := []Time{5, 5, 0, 1 << 40, 5, 3 << 22, 1 << 40, 1023, 1024, 5}
	for i, at := range times {
		q.push(at, event{a: int32(i)})
	}
	want := []int32{2, 0, 1, 4, 9, 7, 8, 5, 3, 6}
	for _, w := range want {
		if e, ok := q.pop(Forever); !ok || e.a != w || q.now != times[w] {
			t.Fatalf("got event %d at %d, want %d", e.a, q.now, w)
		}
	}
	if _, ok := q.pop(Forever); ok {
		t.Error("an event too many")
	}
}

// TestQueueAgainstSlow compares the queue with a search for the least event, with
// delays of all sizes, and pushes after a pop that found nothing.
func TestQueueAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &queue{}
		q.init(uint(rapid.IntRange(0, 12).Draw(t, "bits")))
		type pushed struct {
			at Time
			id int32
		}
		var slow []pushed
		next := int32(0)
		scale := rapid.IntRange(0, 36).Draw(t, "scale")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "push") < 5 {
				at := q.now + Time(rapid.Int64Range(0, 1<<scale).Draw(t, "delay"))
				q.push(at, event{a: next})
				slow = append(slow, pushed{at, next})
				next++
				continue
			}
			until := q.now + Time(rapid.Int64Range(0, 1<<scale).Draw(t, "until"))
			least := -1
			for i := range slow {
				if least < 0 || slow[i].at < slow[least].at {
					least = i
				}
			}
			e, ok := q.pop(until)
			if want := least >= 0 && slow[least].at <= until; ok != want {
				t.Fatalf("pop until %d: %t", until, ok)
			}
			if !ok {
				continue
			}
			if w := slow[least]; e.a != w.id || q.now != w.at {
				t.Fatalf("got %d at %d, want %+v", e.a, q.now, w)
			}
			slow = append(slow[:least], slow[least+1:]...)
		}
		if q.len() != len(slow) {
			t.Fatalf("%d events, want %d", q.len(), len(slow))
		}
	})
}
