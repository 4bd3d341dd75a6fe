// Package dump reads and writes the text files in which OpenSM,
// infiniband-diags, ibdiagnet and ibdmchk keep what a subnet manager decided:
// unicast forwarding tables, hop counts, LID assignments, the list of links
// (which package topology reads), SL-to-VL tables and path SLs. It makes no
// promise to other modules.
//
// Writers print what OpenSM 3.3.23 and infiniband-diags 44 print, byte for
// byte, on a host of little-endian byte order; where they differ on purpose,
// their comments say so. Switches and nodes come in OpenSM's order: OpenSM
// keeps them in maps keyed by the GUID in network byte order, so on such
// hosts they are sorted by the byte-reversed GUID.
//
// Readers also know older forms. Text that cannot be right is a
// *fabric.ParseError with the line; Options.Lenient leaves such lines out
// instead and lists them. What is odd but usable is listed in either case.
// All functions are safe for concurrent use, and their results do not depend
// on the number of CPUs.
//
// A reader goes through a text line by line (textReader, in reader.go) or, where a
// text has a section for each switch, section by section on all CPUs (sectionReader);
// both note what is wrong as findings. topology.Line parses lines, except for
// the tuned loops for rows of forwarding tables (fast.go).
package dump

import (
	"errors"

	"github.com/ibweave/ibweave/fabric"
)

// Options are the settings of a reader.
type Options struct {
	// Lenient leaves out what is wrong and lists it as a Problem, instead of
	// failing.
	Lenient bool
	// AnyPort keeps entries of forwarding tables with ports that the switch does
	// not have, for a checker that makes findings of them.
	AnyPort bool
	// GoneMembers notes members of groups that are no end ports of the fabric as Problems of
	// kind Gone, for a checker that reports them.
	GoneMembers bool
}

// isFatal returns true for the kinds of problems that are errors of a strict reader.
func isFatal(kind fabric.ProblemKind) bool { return kind == fabric.Dropped || kind == fabric.Truncated }

// WriteOptions are the settings of writers of tables.
type WriteOptions struct {
	// Lean leaves out the comments that name a LID's owner. OpenSM then
	// cannot notice that a LID has moved to another port.
	Lean bool
	// Only restricts the output to these switches; nil means all.
	Only []fabric.NodeID
}

// ErrTruncated is wrapped by errors about files that end too early.
var ErrTruncated = errors.New("the file is cut short")
