"""Known privacy bugs; each, planted in a copy of the package, must make a test fail."""

from tests.mutants import (
    in_base,
    in_compiler,
    in_compiler_plan,
    in_compiler_render,
    in_interfaces,
    in_ledger,
    in_owner,
    in_privacy,
    in_session,
)

MUTANTS = (
    *in_base.MUTANTS,
    *in_compiler.MUTANTS,
    *in_compiler_plan.MUTANTS,
    *in_compiler_render.MUTANTS,
    *in_interfaces.MUTANTS,
    *in_ledger.MUTANTS,
    *in_owner.MUTANTS,
    *in_privacy.MUTANTS,
    *in_session.MUTANTS,
)
