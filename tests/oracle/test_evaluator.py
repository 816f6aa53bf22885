"""Two readers of the same terms agree: the one over arrays, and pySMT's own."""

from conformance import inputs_of, random_states, zero_where_undefined
from differences import first_cases
from evaluator import Evaluator
from pysmt.environment import Environment

from ruledb.semantics.symbolic import initial_state, run
from ruledb.semantics.terms import Terms

_STATES = 2


def test_pysmt_evaluates_the_terms_alike():
    """Of each form, every written location has the value in two states that pySMT computes by substituting them."""
    states = random_states(_STATES, seed=17)
    found = []
    for case in first_cases():
        environment = Environment()
        t = Terms(environment)
        final = run(t, [case.instruction], initial_state(t))
        inputs = zero_where_undefined(inputs_of(states), _STATES)
        evaluate, manager = Evaluator(inputs, _STATES), environment.formula_manager
        for key, term in (*final.registers.items(), *final.flags.items()):
            values = evaluate(term)
            symbols = environment.fvo.get_free_variables(term)
            for row in range(_STATES):
                known = {s: manager.BV(int(inputs[s.symbol_name()][row]), s.bv_width()) for s in symbols}
                plain = environment.simplifier.simplify(environment.substituter.substitute(term, known))
                found += [] if plain.is_constant() and plain.constant_value() == int(values[row]) else [(case.text, key, row)]
    assert found == []
