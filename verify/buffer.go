package verify

// Buffer is the room that ports have for packets that come in.
type Buffer struct {
	MTU     int // greatest payload in bytes
	Credits int // of 64 bytes each, that one VL of a port has; 0 if unknown
}

const (
	// CreditBytes is the unit in which a port grants buffer space. A packet takes
	// whole units (IBA 7.9.4.4).
	CreditBytes = 64
	// headerBytes is what a multicast packet has besides its payload: LRH 8, GRH 40,
	// BTH 12, DETH 8, immediate data 4, ICRC 4 and VCRC 2 (IBA 5.2). No packet of
	// another service that a host sends without GRH has more.
	headerBytes = 78
)

// Needed is how many credits a packet of the MTU takes.
func (b Buffer) Needed() int { return (b.MTU + headerBytes + CreditBytes - 1) / CreditBytes }

// report says when a packet does not fit: what is proven about credit loops rests
// on that.
func (b Buffer) report(r *Result) {
	if b.Credits <= 0 || b.Credits >= b.Needed() {
		return
	}
	r.Findings = append(r.Findings, NewFinding(Rules, BufferTooSmall, (b.Needed()-b.Credits)*CreditBytes,
		"a VL has %d credits, %d bytes, and a multicast packet with an MTU of %d takes %d, %d bytes with headers",
		b.Credits, b.Credits*CreditBytes, b.MTU, b.Needed(), b.MTU+headerBytes))
}
