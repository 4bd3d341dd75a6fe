package lft

// AlwaysJoinTwins places the LIDs of twins together on every fabric, while it is
// set, though on small ones every LID is placed again by itself.
func AlwaysJoinTwins(yes bool) { alwaysJoin = yes }

// TwinJobs is how many jobs of s have several destinations, and how many
// destinations the largest has.
func TwinJobs(s *Spread) (jobs, most int) {
	for i := range s.jobs {
		if n := len(s.jobs[i].sets); n > 0 {
			jobs++
			most = max(most, n)
		}
	}
	return jobs, most
}
