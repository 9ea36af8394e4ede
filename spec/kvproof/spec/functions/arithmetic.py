"""Products and quotients: the few facts about them that the other proofs need."""

from __future__ import annotations

from kvproof.spec.functions.language import ensures, lemma, requires, use


@lemma
def products_grow(factor: int, less: int, more: int) -> None:
    """A greater number of equal things is at least one thing more."""
    requires(factor >= 1, less < more)
    ensures(lambda result: less * factor + factor <= more * factor)


@lemma
def quotients_grow(divisor: int, less: int, more: int) -> None:
    """Division keeps order."""
    requires(divisor >= 1, less <= more)
    ensures(
        lambda result: less // divisor <= more // divisor,
        lambda result: less // divisor * divisor <= more // divisor * divisor,
    )
    use(products_grow(divisor, more // divisor, less // divisor))
    use(products_grow(divisor, less // divisor, more // divisor))


@lemma
def quotient_is(divisor: int, number: int, quotient: int, rest: int) -> None:
    """Whatever looks like a quotient with its remainder is that."""
    requires(divisor >= 1, 0 <= rest < divisor, number == quotient * divisor + rest)
    ensures(
        lambda result: number // divisor == quotient,
        lambda result: number % divisor == rest,
    )
    use(
        products_grow(divisor, quotient, number // divisor),
        products_grow(divisor, number // divisor, quotient),
    )


@lemma
def products_are_multiples(divisor: int, quotient: int) -> None:
    """Nothing is left over of a multiple."""
    requires(divisor >= 1)
    ensures(lambda result: (quotient * divisor) % divisor == 0)
    use(quotient_is(divisor, quotient * divisor, quotient, 0))


@lemma
def multiples_are_apart(divisor: int, less: int, more: int) -> None:
    """Two multiples that differ are at least one divisor apart."""
    requires(divisor >= 1, less % divisor == 0, more % divisor == 0, less < more)
    ensures(lambda result: less + divisor <= more)
    use(
        products_grow(divisor, less // divisor, more // divisor),
        products_grow(divisor, more // divisor, less // divisor),
    )


@lemma
def multiples_follow(divisor: int, multiple: int) -> None:
    """A multiple and one divisor more is a multiple."""
    requires(divisor >= 1, multiple % divisor == 0)
    ensures(lambda result: (multiple + divisor) % divisor == 0)
    use(quotient_is(divisor, multiple + divisor, multiple // divisor + 1, 0))


@lemma
def nested_quotients(inner: int, outer: int, number: int) -> None:
    """The chunk of a token is the chunk of its block."""
    requires(inner >= 1, outer >= 1)
    ensures(lambda result: number // inner // outer == number // (inner * outer))
    use(
        products_grow(inner, number // inner % outer, outer),
        quotient_is(
            inner * outer,
            number,
            number // inner // outer,
            number // inner % outer * inner + number % inner,
        ),
    )
