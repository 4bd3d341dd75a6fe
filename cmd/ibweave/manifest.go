package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// fileChanged is a finding about a file of a compiled directory.
func fileChanged(severity verify.Severity, format string, args ...any) verify.Finding {
	return verify.Finding{Rule: verify.FileChanged, Severity: severity, Message: fmt.Sprintf(format, args...), Count: 1}
}

// checkFiles compares the files of a manifest that nothing has read with their sums, and
// what was unpacked with what was packed. Files are not read into memory.
func (a *app) checkFiles(ctx context.Context, in *audit) error {
	s := a.startStage("compare files with "+outdir.ManifestName, 0)
	defer s.end()
	names := slices.Sorted(maps.Keys(in.files))
	found := make([]struct {
		findings  []verify.Finding
		undecided []verify.Undecided
	}, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			x := &found[i]
			unpacked := strings.TrimSuffix(name, outdir.ZstdSuffix)
			sum, err := in.files[name], error(nil)
			if !in.read[name] {
				sum, err = sumOf(name)
			}
			switch {
			case err == nil && sum != in.files[name]:
				x.findings = append(x.findings, fileChanged(verify.Error, "%s was changed since it was compiled, and the verdict does not cover it", name))
			case err == nil:
			case !errors.Is(err, fs.ErrNotExist):
				return &inputError{err}
			case unpacked == name || !exists(unpacked):
				x.findings = append(x.findings, fileChanged(verify.Error, "%s is missing", name))
				return nil
			}
			if unpacked == name || !exists(unpacked) {
				return nil
			}
			same, err := packsTo(unpacked, in.files[name])
			switch {
			case err != nil:
				return &inputError{err}
			case same:
			case in.version != version:
				x.undecided = append(x.undecided, verify.Undecided{Rule: verify.FileChanged,
					Reason: fmt.Sprintf("%s was unpacked, and version %s of ibweave may have packed it in another way than this one, %s", unpacked, in.version, version)})
			case in.read[unpacked]:
				x.findings = append(x.findings, fileChanged(verify.Warning, "%s was changed since it was compiled and unpacked; the verdict is about what it is now", unpacked))
			default:
				x.findings = append(x.findings, fileChanged(verify.Error, "%s was changed since it was compiled and unpacked, and the verdict does not cover it", unpacked))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range found {
		in.findings = append(in.findings, found[i].findings...)
		in.undecided = append(in.undecided, found[i].undecided...)
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// sumOf is the SHA-256 of a file in hexadecimal.
func sumOf(name string) (string, error) {
	h := sha256.New()
	if err := files.CopyRegular(h, name, maxTables); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// packsTo says whether a file has a SHA-256 after it is packed as compile does it.
func packsTo(name, sum string) (bool, error) {
	h := sha256.New()
	if err := dump.WriteZstd(h, func(w io.Writer) error { return files.CopyRegular(w, name, maxTables) }); err != nil {
		return false, err
	}
	return hex.EncodeToString(h.Sum(nil)) == sum, nil
}
