//go:build !linux

package hugepages

// Make is make where there are no huge pages.
func Make[T ~uint8 | ~uint16](size int) []T { return make([]T, size) }
