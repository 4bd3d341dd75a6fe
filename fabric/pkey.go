package fabric

import "fmt"

// PKey is a P_Key, an entry of the P_Key table of a port (IBA 10.9.1): the number of a
// partition in 15 bits, and the bit of the membership. Two ports can talk when they have
// P_Keys of one partition of which at least one is that of a full member.
type PKey uint16

const (
	// FullMember is the bit of full members; without it the membership is limited.
	FullMember PKey = 0x8000
	// DefaultPartition is the partition in which every port can reach subnet administration.
	DefaultPartition PKey = 0x7fff
)

// Partition is the number of the partition, without the bit of the membership. It is 0 for
// an entry that is not in use.
func (k PKey) Partition() PKey { return k &^ FullMember }

// IsFull says whether it is the P_Key of a full member.
func (k PKey) IsFull() bool { return k&FullMember != 0 }

// String is 0x and 4 hexadecimal digits.
func (k PKey) String() string { return fmt.Sprintf("0x%04x", uint16(k)) }
