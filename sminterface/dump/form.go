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
)

var formNames = [...]string{"unknown text", "opensm-lfts.dump", "ibroute or dump_lfts text", "opensm.fdbs",
	"opensm-lid-matrix.dump", "guid2lid", "opensm-subnet.lst", "opensm.mcfdbs", "dump_mfts text", "opensm-sl2vl.dump",
	"smpquery sl2vl text", "ibdmchk's SL-to-VL tables", "path SLs by switch and DLID", "ibdmchk's path SLs", "saquery's multicast groups"}

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
		switch {
		case len(line) == 0, line[0] == '#', bytes.HasPrefix(line, fileVersion):
			continue
		case bytes.HasPrefix(line, unicastLIDs):
			if i := bytes.IndexByte(line, '['); i >= 0 && bytes.HasPrefix(line[i+1:], []byte("0x")) {
				return IBRoute
			}
			return LFTs
		case bytes.HasPrefix(line, []byte("Multicast mlids")):
			return MFTs
		case fdbsHeader(line) > 0:
			return FDBs
		case bytes.HasPrefix(line, []byte("Switch: guid 0x")):
			return LIDMatrix
		case bytes.HasPrefix(line, []byte("{ ")):
			return SubnetList
		case bytes.HasPrefix(line, pathHead):
			return PathSLs
		case bytes.Contains(line, []byte(baseLID)):
			// The sections of ibdmchk -c may begin like those of SL2VL.
			return sectionForm(data[at:], SL2VL)
		case bytes.HasPrefix(line, []byte(portsIn)):
			return SMPQuerySL2VL
		case bytes.HasPrefix(line, []byte("ibwarn: ")):
			continue
		case bytes.HasPrefix(line, []byte("Switch 0x")):
			return MCFDBs
		case recordHead(line):
			return SAQuery
		}
		if _, _, _, _, ok := ibdmRow(line); ok {
			return IBDMSL2VL
		}
		if _, ok := parseGUID2LID(line); ok {
			return GUID2LID
		}
		if _, n := hex0x(line, 16); n > 0 {
			if _, _, ok := ibdmPair(line[n:]); ok {
				return IBDMPathSLs
			}
		}
		if _, _, ok := ibdmSource(line); ok {
			return sectionForm(data[at:], Unknown)
		}
		return Unknown
	}
	return Unknown
}

// sectionForm tells path SLs of ibdmchk, by the line after the first line of a
// section, from another form.
func sectionForm(data []byte, other Form) Form {
	line, _ := cutLine(data, 0)
	line = bytes.TrimSpace(line)
	if _, n := hex0x(line, 16); n > 0 {
		if i := skipBlanks(line, n); i < len(line) && line[i] == ':' {
			return IBDMPathSLs
		}
	}
	return other
}

// fileVersion starts a line that newer ibdiagnet writes into its files.
var fileVersion = []byte("File version:")

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
