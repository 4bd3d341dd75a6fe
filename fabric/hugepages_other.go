//go:build !linux

package fabric

// AdviseHugePages does nothing where there are none.
func AdviseHugePages[T ~uint8]([]T) {}

// MakeHuge is make where there are none.
func MakeHuge[T ~uint8](size int) []T { return make([]T, size) }
