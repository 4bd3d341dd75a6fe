package state

import "cmp"

// TakeFrom gives s those tables of other, a state of the same cables, that s lacks.
func (s *State) TakeFrom(other *State) {
	s.Tables = cmp.Or(s.Tables, other.Tables)
	s.SL2VL = cmp.Or(s.SL2VL, other.SL2VL)
	s.PathSLs = cmp.Or(s.PathSLs, other.PathSLs)
	s.Multicast = cmp.Or(s.Multicast, other.Multicast)
	s.Adaptive = cmp.Or(s.Adaptive, other.Adaptive)
}

// LimitTo removes from s the tables that other lacks.
func (s *State) LimitTo(other *State) {
	limit(&s.Tables, other.Tables)
	limit(&s.SL2VL, other.SL2VL)
	limit(&s.PathSLs, other.PathSLs)
	limit(&s.Multicast, other.Multicast)
	limit(&s.Adaptive, other.Adaptive)
}

func limit[T any](mine **T, other *T) {
	if other == nil {
		*mine = nil
	}
}
