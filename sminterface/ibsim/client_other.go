//go:build !linux

package ibsim

import "syscall"

// tryWrite leaves it to another goroutine to wait: ibsim's abstract sockets are
// Linux's.
func (c *Client) tryWrite([]byte) error { return syscall.EAGAIN }
