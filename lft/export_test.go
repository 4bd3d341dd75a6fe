package lft

// AlwaysJoinEquivalent places the LIDs of equivalent switches together on every fabric, while it is
// set, though on small ones every LID is placed again by itself.
func AlwaysJoinEquivalent(yes bool) { alwaysJoin = yes }

// JoinedJobs is how many jobs of s have several destinations, and how many
// destinations the largest has.
func JoinedJobs(s *Balancer) (jobs, most int) {
	for i := range s.jobs {
		if n := len(s.jobs[i].members); n > 0 {
			jobs++
			most = max(most, n)
		}
	}
	return jobs, most
}
