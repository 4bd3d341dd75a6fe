package dump

import (
	"bytes"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// Form is one of the text forms of this package.
type Form uint8

// The forms, by the file or the tool that has them.
const (
	Unknown       Form = iota
	LFTs               // opensm-lfts.dump
	IBRoute            // ibroute, dump_fts, dump_lfts
	FDBs               // opensm.fdbs, ibdiagnet's fdbs
	LIDMatrix          // opensm-lid-matrix.dump
	GUID2LID           // OpenSM's guid2lid cache
	SubnetList         // opensm-subnet.lst, ibdiagnet's lst
	MCFDBs             // opensm.mcfdbs
	MFTs               // ibroute -M, dump_mfts
	SL2VL              // opensm-sl2vl.dump
	SMPQuerySL2VL      // smpquery sl2vl
	IBDMSL2VL          // ibdmchk -d
	PathSLs            // what WritePathSLs writes
	IBDMPathSLs        // ibdmchk -c
	SAQuery            // saquery -m, -g, MCMR
	Database           // db_csv of ibdiagnet, which package ibdiagnet reads and recognizes
)

var formNames = [...]string{"unknown text", "opensm-lfts.dump", "ibroute or dump_lfts text", "opensm.fdbs",
	"opensm-lid-matrix.dump", "guid2lid", "opensm-subnet.lst", "opensm.mcfdbs", "dump_mfts text", "opensm-sl2vl.dump",
	"smpquery sl2vl text", "ibdmchk's SL-to-VL tables", "path SLs by switch and DLID", "ibdmchk's path SLs", "saquery's multicast groups", "ibdiagnet's db_csv"}

// String is the name of the file, or of the tool that prints the form.
func (f Form) String() string {
	if int(f) < len(formNames) {
		return formNames[f]
	}
	return "form " + strconv.Itoa(int(f))
}

// Recognize tells the form of a (decompressed) text by its first line that
// says something; Unknown when it is none of them, or has no such line.
func Recognize(data []byte) Form {
	for at := 0; at < len(data); {
		var line []byte
		line, at = cutLine(data, at)
		line = bytes.TrimRight(line, " \t\r")
		if isSilent(line) || bytes.HasPrefix(line, libraryWarning) {
			continue
		}
		next, _ := cutLine(data, at)
		return formOf(line, bytes.TrimSpace(next))
	}
	return Unknown
}

// formOf tells the form of a text by its first line. The next one tells path SLs of
// ibdmchk, whose sections may begin as those of opensm-sl2vl.dump do.
func formOf(line, next []byte) Form {
	switch {
	case beginsWith(line, unicastLIDs):
		if _, limits, found := bytes.Cut(line, []byte("[")); found && beginsWith(limits, "0x") {
			return IBRoute
		}
		return LFTs
	case beginsWith(line, "Multicast mlids"):
		return MFTs
	case fdbsHeader(line) > 0:
		return FDBs
	case beginsWith(line, "Switch: guid 0x"):
		return LIDMatrix
	case beginsWith(line, "{ "):
		return SubnetList
	case beginsWith(line, pathHead):
		return PathSLs
	case bytes.Contains(line, []byte(baseLID)):
		if isSectionPath(next) {
			return IBDMPathSLs
		}
		return SL2VL
	case beginsWith(line, portsIn):
		return SMPQuerySL2VL
	case beginsWith(line, mcfdbsSwitch):
		return MCFDBs
	case recordHead(line):
		return SAQuery
	}
	if _, _, ok := parseIBDMRow(line); ok {
		return IBDMSL2VL
	}
	if _, err := parseGUID2LID(line); err == nil {
		return GUID2LID
	}
	pair := scanner{rest: line}
	pair.hex0x(16)
	if _, _, ok := parsePair(pair); ok {
		return IBDMPathSLs
	}
	if _, _, ok := parseSectionHead(line); ok && isSectionPath(next) {
		return IBDMPathSLs
	}
	return Unknown
}

// isSectionPath says whether a line is one of a path in a section of ibdmchk -c.
func isSectionPath(line []byte) bool {
	s := scanner{rest: line}
	s.hex0x(16)
	s.skipBlanks()
	return s.has(":")
}

// WriteZstd writes what write prints as one frame of zstd. The bytes depend on
// nothing else. Errors are those of write and of w.
func WriteZstd(w io.Writer, write func(io.Writer) error) error {
	// The text of dumps repeats itself so much that the best window is a small one.
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return err
	}
	if err := write(z); err != nil {
		_ = z.Close() // the frame is of no use
		return err
	}
	return z.Close()
}
