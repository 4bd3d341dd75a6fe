//go:build !linux

package hugepages

// Advise does nothing where there are no huge pages.
func Advise[T ~uint8]([]T) {}

// Make is make where there are none.
func Make[T ~uint8](size int) []T { return make([]T, size) }
