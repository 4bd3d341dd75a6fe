package ibweave

import (
	"bytes"
	"context"
	"path/filepath"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/verify"
)

// Version is the release of the program and of this package.
const Version = outdir.Version

// maxInput bounds what is read, in bytes of text.
const maxInput = 64 << 30

// readFile reads a regular file, and undoes zstd or gzip.
func readFile(name string) ([]byte, error) {
	raw, err := files.ReadRegular(name, maxInput)
	if err != nil {
		return nil, err
	}
	return files.Decompress(name, raw, func([]byte) (int64, error) { return maxInput, nil })
}

// ReadFabric reads a fabric from a file with a topology in any form that `ibweave help forms`
// lists, which zstd or gzip may have compressed.
func ReadFabric(file string) (*fabric.Fabric, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return ParseFabric(file, text)
}

// ParseFabric makes a fabric of the texts that ReadFabric reads. name stands for the text
// in errors.
func ParseFabric(name string, text []byte) (*fabric.Fabric, error) {
	switch dump.Recognize(text) {
	case dump.Database:
		d, err := ibdiagnet.Read(name, bytes.NewReader(text), ibdiagnet.Options{})
		if err != nil {
			return nil, err
		}
		return d.Fabric, nil
	case dump.SubnetList:
		f, _, err := dump.ReadSubnetList(name, text, dump.Options{})
		return f, err
	}
	f, _, err := topology.Parse(name, text, topology.Options{})
	return f, err
}

// ReadTables reads the forwarding tables of f from a file: opensm-lfts.dump, what dump_lfts
// or ibroute print, or opensm.fdbs. zstd or gzip may have compressed it.
func ReadTables(file string, f *fabric.Fabric) (*lft.Tables, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return ParseTables(file, text, f)
}

// ParseTables makes forwarding tables of f of the texts that ReadTables reads.
func ParseTables(name string, text []byte, f *fabric.Fabric) (*lft.Tables, error) {
	t, _, err := dump.ReadLFTs(name, text, f, dump.Options{})
	return t, err
}

// Engines lists the names of the engines for Compile.
func Engines() []string {
	names := make([]string, len(compile.Engines))
	for i := range compile.Engines {
		names[i] = compile.Engines[i].Name()
	}
	return names
}

// Compile assigns LIDs, routes f with an engine, makes the trees of multicast groups, and
// verifies all of it. Tables with findings are no error: see the Verify of the result.
// Errors are those of [compile.Run]; *lft.DomainError says that the engine does not support
// the fabric.
func Compile(ctx context.Context, f *fabric.Fabric, engine string, opt compile.Options) (*compile.Result, error) {
	e, err := compile.EngineByName(engine)
	if err != nil {
		return nil, err
	}
	return compile.Run(ctx, f, e, opt)
}

// Verify checks that forwarding tables of f deliver all packets, without loops and without
// credit loops. The tables may come from anywhere.
func Verify(ctx context.Context, f *fabric.Fabric, t *lft.Tables, opt verify.Options) (*verify.Result, error) {
	return verify.Check(ctx, f, t, opt)
}

// WriteOptions are the choices of Write.
type WriteOptions struct {
	// InstallDir is the absolute path that OpenSM's configuration gives the files; "" is
	// that of the directory that is written.
	InstallDir string
	Lean       bool // leave the comments out of dumps
	Zstd       bool // compress dumps, which OpenSM wants unpacked
}

// Write writes a result into directory dir, all at once: a crash leaves the old directory or
// the new one. It returns the names of the files. A directory with files that Write did not
// write is refused. Write does not look at r.Verify: that is for the caller to do first.
func Write(ctx context.Context, dir string, r *compile.Result, opt WriteOptions) (names []string, err error) {
	install := opt.InstallDir
	if install == "" {
		if install, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	return outdir.Write(ctx, dir, r, outdir.Options{InstallDir: install, Lean: opt.Lean, Zstd: opt.Zstd})
}

// Path follows a packet from a CA or router port to the base LID of another port: it returns the
// ports by which the packet leaves the source and each switch. The error says where the
// packet is lost, and the ports until there are returned with it.
func Path(f *fabric.Fabric, t *lft.Tables, source, destination fabric.PortID) ([]fabric.PortID, error) {
	return t.Path(f, source, f.LID(destination), nil)
}
