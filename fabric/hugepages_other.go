//go:build !linux

package fabric

// AdviseHugePages does nothing where there are none.
func AdviseHugePages[T ~uint8]([]T) {}
