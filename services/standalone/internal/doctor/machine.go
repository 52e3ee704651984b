package doctor

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	onnx "github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/standalone/internal/portcheck"
)

// machines are Go's names of the processors, by ELF's and by uname's.
var (
	elfMachines   = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64", elf.EM_S390: "s390x", elf.EM_PPC64: "ppc64le"}
	unameMachines = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm", "riscv64": "riscv64", "s390x": "s390x", "ppc64le": "ppc64le"}
)

func (e *examination) checkProgram() {
	var name unix.Utsname
	built := runtime.GOOS + "/" + runtime.GOARCH
	if err := unix.Uname(&name); err != nil {
		e.notChecked("program", "", "version %s for %s; the machine's processor is unknown: %v", service.Version, built, err)
		return
	}
	machine := unix.ByteSliceToString(name.Machine[:])
	if arch, known := unameMachines[machine]; known && arch != runtime.GOARCH {
		e.warn("program", "", e.Typed.RestoreFiles()+" (that for linux/"+arch+")", "version %s is built for %s and runs emulated on %s", service.Version, built, machine)
		return
	}
	e.ok("program", "", "version %s for %s, on %s", service.Version, built, machine)
}

var leadingVariable = regexp.MustCompile(`\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b`)

func (e *examination) checkVariables() {
	for _, fault := range e.Faults {
		name := leadingVariable.FindString(fault.Error())
		fix := ""
		if name != "" {
			fix = "unset " + name
		}
		e.fail("configuration", name, fix, "%v", fault)
	}
	if len(e.Faults) == 0 {
		e.ok("configuration", "", "every service accepts the variables of this environment")
	}
}

// checkRuntime loads ONNX Runtime as inference does.
func (e *examination) checkRuntime() {
	path, err := onnx.FindLibrary()
	if err != nil {
		e.fail("onnxruntime", os.Getenv("ORT_LIB"), e.Typed.RestoreFiles(), "%v", err)
		return
	}
	// Loading a library cut short would end this process, so its size is checked first.
	if err := checkELF(path); err != nil {
		e.fail("onnxruntime", path, e.Typed.RestoreFiles(), "%v", err)
		return
	}
	if err := onnx.Init(path); err != nil {
		e.fail("onnxruntime", path, e.Typed.RestoreFiles(), "%v", err)
		return
	}
	e.ok("onnxruntime", path, "version %s", onnx.LibraryVersion())
}

// checkELF reports why the kernel cannot load a library or program: another processor, or a file cut short.
func checkELF(path string) error {
	if runtime.GOOS != "linux" {
		return nil // other systems have other formats, and their loader is asked
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := elf.Open(path)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is cut short: %d bytes", info.Size())
	}
	if err != nil {
		return fmt.Errorf("it is not a library or program for Linux: %w", err)
	}
	defer f.Close()
	if arch := elfMachines[f.Machine]; arch != runtime.GOARCH {
		return fmt.Errorf("it is for %s, and this program for %s", orUnknown(arch, f.Machine), runtime.GOARCH)
	}
	for _, p := range f.Progs {
		if end := p.Off + p.Filesz; end > uint64(info.Size()) {
			return fmt.Errorf("it is cut short: %d bytes, and its header lists %d", info.Size(), end)
		}
	}
	return nil
}

func orUnknown(arch string, m elf.Machine) string {
	if arch == "" {
		return m.String()
	}
	return arch
}

// clockSlack is the difference between a file's time and the clock that is no fault: a file server has its own clock.
const clockSlack = 2 * time.Minute

func (e *examination) checkClock() {
	newest, file := time.Time{}, ""
	for _, name := range []string{"credentials.json", "last-ready.json", "runtime.json", "platform.log", "layout", "postgres/data/global/pg_control", "nats"} {
		if info, err := os.Stat(filepath.Join(e.DataDir, name)); err == nil && info.ModTime().After(newest) {
			newest, file = info.ModTime(), filepath.Join(e.DataDir, name)
		}
	}
	switch ahead := newest.Sub(e.Now); {
	case file == "":
		e.notChecked("clock", "", "there are no files yet to compare it with")
	case ahead > clockSlack:
		e.fail("clock", file, "timedatectl set-ntp true", "the clock says %s, but this file was written at %s: tokens and sessions of a time to come are rejected", e.Now.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339))
	default:
		e.ok("clock", "", "%s, later than every file", e.Now.UTC().Format(time.RFC3339))
	}
	synchronized, err := isSynchronized()
	switch {
	case err != nil:
		e.notChecked("clock.synchronized", "", "the kernel does not say whether a time server sets the clock: %v", err)
	case !synchronized:
		e.warn("clock.synchronized", "", "timedatectl set-ntp true", "no time server sets the clock")
	default:
		e.ok("clock.synchronized", "", "a time server sets the clock")
	}
}

func (e *examination) checkPorts() {
	for _, a := range e.Addresses {
		check := "port." + strings.ReplaceAll(strings.ToLower(a.Name), " ", "-")
		where := a.Variable + "=" + a.Addr
		_, port, err := net.SplitHostPort(a.Addr)
		if err != nil {
			e.notChecked(check, where, "the address cannot be read")
			continue
		}
		if !e.dir.Held {
			if err := portcheck.Free(a.Addr, a.Name, a.Variable); err != nil {
				e.fail(check, where, "export "+a.Variable+"="+freeAddress(a), "%v", err)
			} else {
				e.ok(check, where, "free")
			}
			continue
		}
		holder, pid := portcheck.Holder(port)
		switch {
		case pid == 0:
			e.notChecked(check, where, "a platform runs, and the system does not show which process listens here")
		case strconv.Itoa(pid) == strings.Trim(strings.TrimPrefix(e.dir.Holder, " (pid "), ")"):
			e.ok(check, where, "the running platform listens")
		default:
			e.fail(check, where, "export "+a.Variable+"="+freeAddress(a), "%s listens here, not the platform that runs on the data directory%s", holder, e.dir.Holder)
		}
	}
}

// freeAddress is the address with a port that is free now, or the value of PLATFORM_POSTGRES_PORT.
func freeAddress(a Address) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:PORT"
	}
	defer l.Close()
	if _, port, _ := net.SplitHostPort(l.Addr().String()); a.Variable == "PLATFORM_POSTGRES_PORT" {
		return port
	}
	return l.Addr().String()
}

// lookup is the value of a variable, empty if it is not set.
func (e *examination) lookup(name string) string {
	value := ""
	for _, kv := range e.Environ {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			value = v
		}
	}
	return value
}

func (e *examination) path(elem ...string) string {
	return filepath.Join(slices.Concat([]string{e.dir.Path}, elem)...)
}

func isAbsent(err error) bool { return errors.Is(err, os.ErrNotExist) }
