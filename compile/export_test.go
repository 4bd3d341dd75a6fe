package compile

// HoldPreparation has what is to be prepared begin only when the result is called.
func (c *Incremental) HoldPreparation() (resume func()) {
	prepare, held := c.prepare, make(chan struct{})
	c.prepare = func() prepared {
		<-held
		return prepare()
	}
	return func() { close(held) }
}
