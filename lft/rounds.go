package lft

import "sync"

// rounds deals out the jobs of a Balancer to workers: those with load round by round,
// and those without to workers that would wait for others otherwise.
//
// Loads are merged between two rounds by the worker that ends the first of them,
// while others do jobs without load. Which of these that is, and when, does not
// matter for the result.
type rounds struct {
	mu        sync.Mutex
	changed   sync.Cond // another round has begun, or stopped is set
	size      int
	next, end int // jobs of the round that no worker has
	busy      int // jobs of the round that are not done
	loaded    int
	idle, all int  // jobs without load that no worker has, in blocks
	stopped   bool // a worker gave up
}

// block is jobs without load that one worker has: they write to the same cache
// lines of the tables.
type block struct{ next, end int }

func newRounds(size, loaded, all int) *rounds {
	q := &rounds{size: size, end: min(size, loaded), loaded: loaded, idle: loaded, all: all}
	q.busy = q.end
	q.changed.L = &q.mu
	return q
}

// takeJob gives a worker its next job, -1 when there is none left.
func (q *rounds) takeJob(mine *block) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.stopped {
		switch {
		case q.next < q.end:
			q.next++
			return q.next - 1
		case mine.next < mine.end:
			mine.next++
			return mine.next - 1
		case q.idle < q.all:
			*mine = block{q.idle, min(q.idle+BlockSize, q.all)}
			q.idle = mine.end
		case q.end == q.loaded:
			return -1
		default:
			q.changed.Wait()
		}
	}
	return -1
}

// finishJob takes note that a job with load is done. If it was the last one of its
// round, it returns true, and the caller must call startRound.
func (q *rounds) finishJob() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	return q.busy == 0
}

// startRound begins the next round.
func (q *rounds) startRound() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next, q.end = q.end, min(q.end+q.size, q.loaded)
	q.busy = q.end - q.next
	q.changed.Broadcast()
}

// stopWorkers ends all workers, since one has given up.
func (q *rounds) stopWorkers() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.changed.Broadcast()
}
