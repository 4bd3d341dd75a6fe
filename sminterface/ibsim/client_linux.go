package ibsim

import "syscall"

// tryWrite sends a request, or returns EAGAIN where that would mean to wait.
func (c *Client) tryWrite(b []byte) error {
	var to syscall.Sockaddr
	if c.out != nil {
		to = &syscall.SockaddrUnix{Name: c.out.Name}
	}
	failed := syscall.EAGAIN
	err := c.raw.Control(func(fd uintptr) {
		var e error
		if to == nil {
			_, e = syscall.Write(int(fd), b) // the descriptor does not block
		} else {
			e = syscall.Sendto(int(fd), b, syscall.MSG_DONTWAIT, to)
		}
		if e == nil {
			failed = 0
		} else if n, ok := e.(syscall.Errno); ok && n != syscall.EINTR {
			failed = n
		}
	})
	if err != nil {
		return err
	}
	if failed != 0 {
		return failed
	}
	return nil
}
