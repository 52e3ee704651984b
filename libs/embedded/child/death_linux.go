package child

import "syscall"

func setDeathSignal(a *syscall.SysProcAttr, s syscall.Signal) { a.Pdeathsig = s }
